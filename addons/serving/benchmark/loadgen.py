# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures the server by MLPerf's LoadGen, in its server scenario.

  .venv/bin/pip install -r addons/serving/benchmark/requirements.txt
  bazel run //addons/serving/benchmark:loadgen -- --qps=10,20,40

A query is a gRPC request with the pairs of one user and 100 to 700 items, 270 on the mean,
as in MLPerf's DLRM benchmark. Queries arrive at random (Poisson). Prints a line for each
target rate; LoadGen calls a run valid if the 99th percentile is at most --latency_ms and
the run was long enough, else its reasons follow. LoadGen, the client and the server share
the machine. With --storage=HBM, on TensorFlow 1.15.0's GPU build:

  python -m embedding_variable.gpu run DIR -- python addons/serving/benchmark/loadgen.py \
    --storage=HBM --rows=50000 --dim=128
"""

import os
import re
import tempfile

from absl import app
from absl import flags
import grpc
import mlperf_loadgen as lg
import numpy as np

import embedding_variable  # pylint: disable=unused-import

import served_model

FLAGS = flags.FLAGS
flags.DEFINE_integer("tables", 26, "Tables of the model.", lower_bound=1)
flags.DEFINE_integer("rows", 100000, "Rows of a table.", lower_bound=1)
flags.DEFINE_integer("dim", 16, "Floats per row.", lower_bound=1)
flags.DEFINE_enum("storage", "DRAM", ["DRAM", "HBM"], "Memory of the rows; HBM is a GPU's.")
flags.DEFINE_list("qps", ["10", "20", "40"], "Target queries per second.")
flags.DEFINE_integer("latency_ms", 10, "Limit of the 99th percentile.", lower_bound=1)
flags.DEFINE_integer("seconds", 60, "Time of a run.", lower_bound=1)
flags.DEFINE_integer("requests", 256, "Different requests.", lower_bound=1)

_LEAST, _MOST, _MEAN = 100, 700, 270

_SUMMARY = {
    "rate": r"Completed samples per second *: ([\d.]+)",
    "p50": r"50\.00 percentile latency \(ns\) *: (\d+)",
    "p99": r"99\.00 percentile latency \(ns\) *: (\d+)",
    "result": r"Result is : (\w+)",
}


def _requests():
  """Returns serialized PredictRequests."""
  random = np.random.RandomState(1)
  mean = (_MEAN - _LEAST) / (_MOST - _LEAST)
  shares = random.beta(6 * mean, 6 * (1 - mean), FLAGS.requests)
  sizes = (_LEAST + (_MOST - _LEAST) * shares).astype(int)
  return [served_model.request(int(size), FLAGS.tables, FLAGS.rows, seed).SerializeToString()
          for seed, size in enumerate(sizes)]


class _Client(object):
  """Sends the queries of LoadGen. failures: errors of requests."""

  def __init__(self, port):
    self._channel = grpc.insecure_channel("127.0.0.1:%d" % port)
    self._predict = self._channel.unary_unary(served_model.PATH)
    self._requests = _requests()
    self.failures = []

  def issue(self, samples):
    for sample in samples:
      call = self._predict.future(self._requests[sample.index])
      call.add_done_callback(lambda call, number=sample.id: self._end(call, number))

  def _end(self, call, number):
    if call.exception() is not None:
      self.failures.append(call.exception())
    lg.QuerySamplesComplete([lg.QuerySampleResponse(number, 0, 0)])

  def measure(self, qps, folder):
    """Runs LoadGen at a rate; returns the values of _SUMMARY as texts."""
    settings = lg.TestSettings()
    settings.scenario = lg.TestScenario.Server
    settings.mode = lg.TestMode.PerformanceOnly
    settings.server_target_qps = qps
    settings.server_target_latency_ns = FLAGS.latency_ms * 1000000
    settings.server_target_latency_percentile = 0.99
    settings.min_duration_ms = 1000 * FLAGS.seconds
    logs = lg.LogSettings()
    logs.log_output.outdir = folder
    logs.log_output.copy_summary_to_stdout = False
    logs.enable_trace = False
    sut = lg.ConstructSUT(self.issue, lambda: None)
    qsl = lg.ConstructQSL(FLAGS.requests, FLAGS.requests, lambda unused: None,
                          lambda unused: None)
    lg.StartTestWithLogSettings(sut, qsl, settings, logs)
    lg.DestroyQSL(qsl)
    lg.DestroySUT(sut)
    if self.failures:
      raise RuntimeError("%d requests failed: %s" % (len(self.failures), self.failures[0]))
    with open(os.path.join(folder, "mlperf_log_summary.txt")) as f:
      summary = f.read()
    found = {name: re.search(pattern, summary).group(1) for name, pattern in _SUMMARY.items()}
    if found["result"] != "VALID":
      found["result"] += ": " + ", ".join(
          line.strip() for line in summary.splitlines() if re.search(r"satisfied *: *NO", line))
    return found


def main(unused_argv):
  with tempfile.TemporaryDirectory(prefix="serving_loadgen_") as folder:
    models = os.path.join(folder, "models")
    os.mkdir(models)
    served_model.write(os.path.join(models, "1"), FLAGS.tables, FLAGS.rows, FLAGS.dim,
                       FLAGS.storage)
    more = ["--tensorflow_inter_op_parallelism=1"]
    if FLAGS.storage == "HBM":
      more.append("--per_process_gpu_memory_fraction=0.3")  # the rows take of the rest
    with served_model.serving(models, folder, *more) as server:
      client = _Client(server.grpc_port)
      for qps in FLAGS.qps:
        found = client.measure(float(qps), folder)
        print("target %s queries/s: %s completed, p50 %.2f ms, p99 %.2f ms, %s" % (
            qps, found["rate"], float(found["p50"]) / 1e6, float(found["p99"]) / 1e6,
            found["result"]), flush=True)


if __name__ == "__main__":
  app.run(main)

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures the server under load.

  bazel run //addons/serving/benchmark:speed

The model is a small DLRM. h2load (package nghttp2-client) sends requests; it and the server
share the machine. Prints:

  batch     requests of --batch samples: session.run in a loop of --threads threads, then
            the same by gRPC and REST, --rounds times
  single    requests of one sample with dynamic batching, as fast as possible and at half
            that rate
  reload    the half rate again, while a new version comes every --reload_seconds

A request that is not answered with OK ends the program with an error.
"""

import os
import shutil
import statistics
import tempfile
import threading
import time

from absl import app
from absl import flags
import tensorflow as tf

import embedding_variable  # pylint: disable=unused-import

import served_model

FLAGS = flags.FLAGS
flags.DEFINE_integer("tables", 26, "Tables of the model.", lower_bound=1)
flags.DEFINE_integer("rows", 100000, "Rows of a table.", lower_bound=1)
flags.DEFINE_integer("dim", 16, "Floats per row.", lower_bound=1)
flags.DEFINE_integer("batch", 64, "Samples of a large request.", lower_bound=1)
flags.DEFINE_integer("seconds", 20, "Time for each figure.", lower_bound=1)
flags.DEFINE_integer("rounds", 1, "Measurements of each rate, in turn; the median counts.",
                     lower_bound=1)
flags.DEFINE_integer("threads", 2, "Threads of session.run.", lower_bound=1)
flags.DEFINE_integer("clients", 16, "Connections with one request in flight each.",
                     lower_bound=1)
flags.DEFINE_integer("reload_seconds", 10, "Seconds between versions.", lower_bound=1)
flags.DEFINE_integer("num_reloads", 12, "Versions that come under load.")
flags.DEFINE_list("parts", ["batch", "single", "reload"], "What to measure.")
flags.DEFINE_string("preload", "", "A library for LD_PRELOAD of the server, such as jemalloc.")
flags.DEFINE_bool("in_caller", False,
                  "A run's ops run in the thread that calls the session, not in TensorFlow's.")

_BATCHING = """max_batch_size { value: 64 } batch_timeout_micros { value: 0 }
max_enqueued_batches { value: 100 } num_batch_threads { value: %d }"""


def _bare(version):
  """Returns the runs per second of session.run with the large batch."""
  v1 = tf.compat.v1
  with tf.Graph().as_default(), v1.Session() as session:
    signature = v1.saved_model.load(session, ["serve"], version).signature_def[
        "serving_default"]
    scores = session.graph.get_tensor_by_name(signature.outputs["scores"].name)
    values = {signature.inputs[name].name: array for name, array in served_model.feeds(
        FLAGS.batch, FLAGS.tables, FLAGS.rows).items()}
    counts, begin = [0] * FLAGS.threads, time.time()

    def run(k):
      while time.time() < begin + FLAGS.seconds:
        session.run(scores, values)
        counts[k] += 1

    threads = [threading.Thread(target=run, args=(k,)) for k in range(FLAGS.threads)]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
    return sum(counts) / (time.time() - begin)


def _copy_versions(models, stop):
  """Copies the newest version under the next number, again and again."""
  number = 1
  while number <= FLAGS.num_reloads and not stop.wait(FLAGS.reload_seconds):
    part = os.path.join(models, "part")
    shutil.copytree(os.path.join(models, str(number)), part)
    os.rename(part, os.path.join(models, str(number + 1)))
    if number > 1:
      shutil.rmtree(os.path.join(models, str(number - 1)))
    number += 1


def _load(server, body, seconds, clients, rate=0):
  before = server.requests().get("OK", 0)
  found = served_model.Load(server, body, seconds, clients, rate)
  counts = server.requests()
  if set(counts) != {"OK"} or counts["OK"] == before:
    raise RuntimeError("requests were not answered: %s" % counts)
  return found


def _measure(folder):
  models = os.path.join(folder, "models")
  os.mkdir(models)
  version = os.path.join(models, "1")
  served_model.write(version, FLAGS.tables, FLAGS.rows, FLAGS.dim)
  large = served_model.write_bodies(folder, FLAGS.batch, FLAGS.tables, FLAGS.rows)
  small = served_model.write_bodies(folder, 1, FLAGS.tables, FLAGS.rows)
  environment = {"LD_PRELOAD": FLAGS.preload} if FLAGS.preload else {}
  in_caller = ["--tensorflow_inter_op_parallelism=1"] if FLAGS.in_caller else []
  if "batch" in FLAGS.parts:
    with served_model.serving(models, folder, *in_caller, **environment) as server:
      for name, body in zip(("gRPC", "REST"), large):
        _load(server, body, 2, FLAGS.clients)
        shares = []
        for _ in range(FLAGS.rounds):
          bare = _bare(version)
          found = _load(server, body, FLAGS.seconds, FLAGS.clients)
          shares.append(100 * found.rate / bare)
          print("session.run       batch %3d %8.0f/s" % (FLAGS.batch, bare))
          print("%-17s batch %3d %s  %.0f %% of session.run" % (
              name, FLAGS.batch, found, shares[-1]), flush=True)
        print("%-17s batch %3d %33s median %.0f %% of session.run" % (
            name, FLAGS.batch, "", statistics.median(shares)), flush=True)
  batching = os.path.join(folder, "batching")
  with open(batching, "w") as f:
    f.write(_BATCHING % FLAGS.threads)
  options = [models, folder, "--enable_batching",
             "--batching_parameters_file=" + batching] + in_caller
  if not {"single", "reload"} & set(FLAGS.parts):
    return
  with served_model.serving(*options, **environment) as server:
    rates = {}
    for name, body in zip(("gRPC", "REST"), small):
      _load(server, body, 2, FLAGS.clients)
      found = [_load(server, body, FLAGS.seconds, FLAGS.clients) for _ in range(FLAGS.rounds)]
      rates[body] = statistics.median(load.rate for load in found) / 2
      for load in found:
        print("%-17s batch   1 %s" % (name, load), flush=True)
      print("%-17s batch   1 %s" % (name + ", half rate", _load(
          server, body, FLAGS.seconds, FLAGS.clients, rates[body])), flush=True)
    if "reload" not in FLAGS.parts:
      return
    stop = threading.Event()
    copies = threading.Thread(target=_copy_versions, args=(models, stop))
    memory = server.resident()
    copies.start()
    try:
      found = _load(server, small[0], FLAGS.reload_seconds * (FLAGS.num_reloads + 1),
                    FLAGS.clients, rates[small[0]])
    finally:
      stop.set()
      copies.join()
    print("gRPC, %2d reloads  batch   1 %s, memory %+.0f MB" % (
        FLAGS.num_reloads, found, (server.resident() - memory) / 1e6), flush=True)


def main(unused_argv):
  with tempfile.TemporaryDirectory(prefix="serving_speed_") as folder:
    _measure(folder)


if __name__ == "__main__":
  app.run(main)

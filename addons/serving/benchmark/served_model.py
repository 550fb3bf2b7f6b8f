# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The model of the benchmarks, the server as a process, and the load on it."""

import contextlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import urllib.request

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2

import embedding_variable as ev
# The import above provides this module.
from tensorflow.core.framework.embedding import config_pb2

NUMBERS = 13
PATH = "/tensorflow.serving.PredictionService/Predict"


def predictions(numbers, ids, tables, dim, storage):
  """Returns the scores [B] of a DLRM: numbers [B, 13], ids [B, tables] int64."""
  v1 = tf.compat.v1
  option = ev.EmbeddingVariableOption(storage_option=ev.StorageOption(
      storage_type=config_pb2.StorageType.Value(storage)))

  def layers(x, widths, name):
    for k, width in enumerate(widths):
      kernel = v1.get_variable("%s_%d" % (name, k), [x.shape[1], width])
      x = tf.matmul(x, kernel)
      x = tf.nn.relu(x) if width > 1 else x
    return x

  vectors = [layers(numbers, [64, dim], "bottom")]
  for t in range(tables):
    table = ev.get_embedding_variable("table_%d" % t, embedding_dim=dim,
                                      ev_option=option)
    vectors.append(tf.nn.embedding_lookup(table, ids[:, t]))
  pairs = ev.dot_interaction(vectors)
  pairs.set_shape([None, (tables + 1) * tables // 2])
  return tf.squeeze(layers(tf.concat([vectors[0], pairs], axis=1), [128, 64, 1], "top"), 1)


def write(folder, tables, rows, dim, storage="DRAM"):
  """Writes a version with all rows trained.

  Args:
    folder: that of the version.
    tables, rows, dim: ints, of the model.
    storage: name of a StorageType, where the rows are while it is served.
  """
  v1 = tf.compat.v1
  # A GPU's memory is left to the server, since TensorFlow frees none.
  config = v1.ConfigProto(gpu_options=v1.GPUOptions(allow_growth=True))
  with tf.Graph().as_default(), v1.Session(config=config) as session:
    numbers = v1.placeholder(tf.float32, [None, NUMBERS], name="numbers")
    ids = v1.placeholder(tf.int64, [None, tables], name="ids")
    scores = predictions(numbers, ids, tables, dim, storage)
    train = v1.train.GradientDescentOptimizer(1e-3).minimize(tf.reduce_sum(scores))
    session.run(v1.global_variables_initializer())
    for begin in range(0, rows, 10000):
      keys = np.arange(begin, min(rows, begin + 10000))
      session.run(train, {ids: np.repeat(keys[:, None], tables, axis=1),
                          numbers: np.ones([len(keys), NUMBERS], np.float32)})
    part = folder + ".part"
    v1.saved_model.simple_save(session, part, {"numbers": numbers, "ids": ids},
                               {"scores": scores})
  os.rename(part, folder)


def feeds(batch, tables, rows, seed=1):
  """Returns {input: array} of a request."""
  random = np.random.RandomState(seed)
  return {"numbers": random.rand(batch, NUMBERS).astype(np.float32),
          "ids": random.randint(0, rows, [batch, tables]).astype(np.int64)}


def request(batch, tables, rows, seed=1):
  """Returns a PredictRequest."""
  message = predict_pb2.PredictRequest()
  message.model_spec.name = "default"
  for name, array in feeds(batch, tables, rows, seed).items():
    message.inputs[name].CopyFrom(tf.compat.v1.make_tensor_proto(array))
  return message


def write_bodies(folder, batch, tables, rows):
  """Writes a request as a gRPC frame and as JSON; returns both paths."""
  values = feeds(batch, tables, rows)
  message = request(batch, tables, rows).SerializeToString()
  paths = [os.path.join(folder, "%d.%s" % (batch, kind)) for kind in ("grpc", "json")]
  with open(paths[0], "wb") as f:
    f.write(b"\0" + struct.pack(">I", len(message)) + message)
  with open(paths[1], "w") as f:
    json.dump({"inputs": {name: array.tolist() for name, array in values.items()}}, f)
  return paths


class Server(object):
  """The server as a process of its own, with metrics.

  Attributes:
    process: subprocess.Popen.
    grpc_port, rest_port: ports of this machine.
  """

  def __init__(self, models, folder, *flags, **environment):
    monitoring = os.path.join(folder, "monitoring")
    with open(monitoring, "w") as f:
      f.write('prometheus_config { enable: true path: "/metrics" }')
    self._log = open(os.path.join(folder, "server.log"), "w+")
    self.process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "embedding_variable", "serve", models,
         "--port=0", "--rest_api_port=0", "--monitoring_config_file=" + monitoring,
         "--file_system_poll_wait_seconds=0.2"] + list(flags),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, universal_newlines=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), **environment))
    seen = ""
    for line in self.process.stderr:
      seen += line
      if "serves" in seen and "gRPC on" in seen:
        break
    found = re.search(r"gRPC on 127\.0\.0\.1:(\d+), HTTP on port (\d+)", seen)
    if not found:
      raise RuntimeError("the server ended:\n" + seen)
    self.grpc_port, self.rest_port = int(found.group(1)), int(found.group(2))
    self._drain = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=self._log)

  def requests(self):
    """Returns {status: number of requests} since the start."""
    with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % self.rest_port) as answer:
      text = answer.read().decode()
    counts = {}
    for status, number in re.findall(r'request_count{.*status="(\w+)".*} (\d+)', text):
      counts[status] = counts.get(status, 0) + int(number)
    return counts

  def resident(self):
    """Returns its resident memory in bytes."""
    with open("/proc/%d/statm" % self.process.pid) as f:
      return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

  def stop(self):
    """Ends it by SIGTERM; returns the exit status."""
    self.process.send_signal(signal.SIGTERM)
    status = self.process.wait(60)
    self._drain.wait(60)
    self._log.close()
    return status


@contextlib.contextmanager
def serving(*args, **environment):
  server = Server(*args, **environment)
  try:
    yield server
  finally:
    server.stop()


class Load(object):
  """One run of h2load, which speaks HTTP/2 and so gRPC, and HTTP/1.1.

  Attributes:
    rate: answers per second.
    times: latencies in seconds, sorted.
  """

  def __init__(self, server, body, seconds, clients, rate=0):
    """Runs it.

    Args:
      server: Server.
      body: path of a request.
      seconds: duration.
      clients: number of connections, each with one request in flight.
      rate: requests per second; 0: as many as are answered. h2load lets all connections send
        at the same moments, so there is only one then, or two over HTTP/1.1.
    """
    if shutil.which("h2load") is None:
      raise RuntimeError("h2load is missing; it is in the package nghttp2-client")
    log = body + ".log"
    if os.path.exists(log):
      os.remove(log)
    if body.endswith(".grpc"):
      target = ["http://127.0.0.1:%d%s" % (server.grpc_port, PATH), "--header=te: trailers",
                "--header=content-type: application/grpc"]
    else:
      target = ["--h1", "--header=content-type: application/json",
                "http://127.0.0.1:%d/v1/models/default:predict" % server.rest_port]
    streams, limit = 1, []
    if rate:
      streams, clients = (clients, 1) if body.endswith(".grpc") else (1, 2)
      limit = ["--rps=%.3f" % (rate / clients)]
    subprocess.run(
        ["h2load", "-c", str(clients), "-m", str(streams), "-d", body, "--log-file=" + log,
         "-D", str(seconds)] + limit + target, check=True, stdout=subprocess.DEVNULL)
    lines = np.loadtxt(log, ndmin=2)  # start in us, status, duration in us
    if (lines[:, 1] != 200).any():
      raise RuntimeError("%d requests failed" % (lines[:, 1] != 200).sum())
    ends = lines[:, 0] + lines[:, 2]
    self.rate = len(lines) / ((ends.max() - lines[:, 0].min()) / 1e6)
    self.times = np.sort(lines[:, 2]) / 1e6

  def milliseconds(self, percentile):
    return 1e3 * np.percentile(self.times, percentile)

  def __str__(self):
    return "%8.0f/s   p50 %6.2f   p99 %6.2f   p99.9 %6.2f ms" % (
        (self.rate,) + tuple(self.milliseconds(p) for p in (50, 99, 99.9)))

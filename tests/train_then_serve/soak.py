# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the server under requests, reloads and bad clients, and measures its memory.

  python tests/train_then_serve/soak.py --seconds=3600

A training session publishes full versions and deltas all the time. Clients compare every
answer with the steps that were published. Bad clients send damaged requests, abort,
crash and never end. After the warm-up and at the end the program measures the server's
resident memory, threads and open files while no request runs. At last the server gets
SIGTERM while a model loads that never ends. The last line is `soak passed` or `soak
failed: ...`, and the exit status 0 or 1.
"""

import argparse
import collections
import os
import shutil
import sys
import tempfile
import time
import urllib.request

import numpy as np
import tensorflow.compat.v1 as tf

if tf.executing_eagerly():  # TensorFlow 2.x
  tf.disable_v2_behavior()

# pylint: disable=wrong-import-position
import embedding_variable as ev
from tensorflow_serving.apis import predict_pb2

import bad_clients
import processes

_KEYS = list(range(-50, 50))
_PUBLISH_SECONDS, _FULL_EVERY = 0.2, 5

Usage = collections.namedtuple("Usage", ["mib", "threads", "files"])


class SoakError(Exception):
  """A check failed."""


def usage(pid):
  """Returns the Usage of a process: resident memory in MiB, threads, open files."""
  with open("/proc/%d/statm" % pid) as f:
    pages = int(f.read().split()[1])
  return Usage(pages * os.sysconf("SC_PAGE_SIZE") / 2.0 ** 20,
               len(os.listdir("/proc/%d/task" % pid)), len(os.listdir("/proc/%d/fd" % pid)))


def check_usage(first, last, limits):
  """Raises SoakError if a process uses more than before, by more than `limits`."""
  for name, before, after, limit in zip(Usage._fields, first, last, limits):
    if after - before > limit:
      raise SoakError("%s grew from %.0f to %.0f, expected at most %.0f more" % (
          name, before, after, limit))


class Training(object):
  """A session that trains and publishes: the score of each key is 101 * steps.

  Attributes:
    steps: int, how many have begun to be published.
  """

  def __init__(self, folder):
    self.steps = 0
    graph = tf.Graph()
    with graph.as_default():
      table, dense, self._ids, _ = self._model()
      rows = tf.nn.embedding_lookup(table, self._ids)
      self._train = tf.train.GradientDescentOptimizer(1.0).minimize(
          -tf.reduce_sum(rows) - dense)
      self._publisher = ev.publish.Publisher(folder, self._serving_fn, keep=4)
      self._publisher.build()
      init = tf.global_variables_initializer()
    self._session = tf.Session(graph=graph)
    self._session.run(init)
    self.step()

  @staticmethod
  def _model():
    table = ev.get_embedding_variable("users", 4, initializer=tf.zeros_initializer())
    dense = tf.get_variable("dense", [], initializer=tf.zeros_initializer())
    ids = tf.placeholder(tf.int64, [None], "ids")
    scores = tf.reduce_mean(tf.nn.embedding_lookup(table, ids), axis=1) + 100 * dense
    return table, dense, ids, scores

  def _serving_fn(self):
    _, dense, ids, scores = self._model()
    return {"ids": ids}, {"scores": scores, "step": tf.identity(dense)}

  def step(self):
    """Trains one step, and publishes."""
    self._session.run(self._train, {self._ids: _KEYS})
    self.steps += 1
    if self.steps % _FULL_EVERY == 1:
      self._publisher.full(self._session, self.steps)
    else:
      self._publisher.delta(self._session, self.steps)


class _Checked(object):
  """Function of a client that compares an answer with the steps, and returns None."""

  def __init__(self, ask, training):
    self._ask, self._training, self.step = ask, training, 0

  def __call__(self):
    answer = self._ask()
    scores, step = np.unique(answer["scores"]), float(answer["step"])
    if scores.tolist() != [101 * step] or not self.step <= step <= self._training.steps:
      raise SoakError("step %s after step %s of %d, with the scores %s, expected 101 * step" % (
          step, self.step, self._training.steps, scores))
    self.step = step


class Soak(object):
  """A server, its training and its clients."""

  def __init__(self, folder, args):
    self._args = args
    self._slow = os.path.join(folder, "slow")
    self._published = os.path.join(folder, "published")
    os.mkdir(self._slow)
    self.training = Training(self._published)
    config = os.path.join(folder, "models")
    with open(config, "w") as f:
      f.write("model_config_list { %s }" % " ".join(
          'config { name: "%s" base_path: "%s" }' % item
          for item in (("m", self._published), ("slow", self._slow))))
    self.server, self._ports = processes.server(
        folder, "--model_config_file=" + config, "--file_system_poll_wait_seconds=0.05",
        "--drain_seconds=2", "--rest_api_timeout_in_ms=5000")
    self._failures, self._bad = collections.Counter(), collections.Counter()
    self._answers = 0

  def _clients(self):
    by_grpc = lambda: processes.ask_by_grpc(
        self._ports[0], "m", {"ids": np.array(_KEYS, np.int64)})
    by_http = lambda: processes.ask_by_http(self._ports[1], "m", {"ids": _KEYS})
    return [processes.Client(_Checked(make(), self.training))
            for make in [by_grpc, by_http] * self._args.clients]

  def _state(self, model):
    try:
      with urllib.request.urlopen("http://127.0.0.1:%d/v1/models/%s" % (
          self._ports[1], model), timeout=60) as answer:
        return answer.read().decode()
    except OSError:
      return ""

  def phase(self, seconds, seed):
    """Runs training and all clients for some seconds; returns the server's Usage."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "m"
    request.inputs["ids"].CopyFrom(tf.make_tensor_proto(_KEYS, tf.int64))
    threads = self._clients()
    bad = bad_clients.BadClients(self._ports, "/v1/models/m:predict",
                                 request.SerializeToString(), seed)
    for thread in threads + [bad]:
      thread.start()
    end = time.time() + seconds
    while time.time() < end and self.server.popen.poll() is None:
      self.training.step()
      time.sleep(_PUBLISH_SECONDS)
    for thread in threads + [bad]:
      thread.stop()
      if thread.error:
        raise SoakError("a client ended: %r" % thread.error)
    if self.server.popen.poll() is not None:
      raise SoakError("the server ended:\n" + self.server.output()[-3000:])
    for client in threads:
      self._answers += len(client.answers)
      self._failures.update(code for code, _ in client.take_failures())
    self._bad.update(bad.counts)
    # One version is left, so that what is compared is the same.
    processes.wait_until(lambda: self._state("m").count('"AVAILABLE"') == 1 and
                         '"UNLOADING"' not in self._state("m"), "one version", [self.server])
    return usage(self.server.popen.pid)

  def end_while_loading(self):
    """Sends SIGTERM while a load runs that never ends.

    Raises:
      SoakError: the exit status is not 0.
    """
    part = os.path.join(self._slow, "part")
    version = next(name for name in os.listdir(self._published) if name.isdigit())
    shutil.copytree(os.path.join(self._published, version), part)
    os.mkdir(os.path.join(part, "assets.extra"))
    # A pipe without a writer has no end.
    os.mkfifo(os.path.join(part, "assets.extra", "tf_serving_warmup_requests"))
    os.rename(part, os.path.join(self._slow, "1"))
    processes.wait_until(lambda: '"LOADING"' in self._state("slow"), "a load", [self.server])
    status = self.server.terminate()
    if status:
      raise SoakError("after SIGTERM the exit status is %d:\n%s" % (
          status, self.server.output()[-3000:]))

  def run(self):
    """Runs all phases.

    Raises:
      SoakError: a request failed, an answer is wrong, or the server uses more than before.
    """
    args = self._args
    try:
      self.server.start()
      processes.wait_until(lambda: '"AVAILABLE"' in self._state("m"), "the model", [self.server])
      first = self.phase(args.warm_up_seconds, args.seed)
      print("after the warm-up: %s" % (first,))
      steps = self.training.steps
      last = self.phase(args.seconds, args.seed + 1)
      print("at the end: %s, after %d publications" % (last, self.training.steps - steps))
      print("answers: %d, failures: %s" % (self._answers, dict(self._failures)))
      print("bad clients: %s" % dict(self._bad))
      if self._failures or not self._answers:
        raise SoakError("%d answers; failed requests: %s" % (self._answers, self._failures))
      check_usage(first, last, (args.growth_mib, args.growth_threads, args.growth_files))
      self.end_while_loading()
    finally:
      self.server.kill()


def main(argv):
  """Returns the exit status."""
  parser = argparse.ArgumentParser(description="Runs the server for a long time.")
  add = parser.add_argument
  add("--seconds", type=float, default=600, help="after the warm-up (default: 600)")
  add("--warm_up_seconds", type=float, default=300,
      help="memory settles after some 200 full versions (default: 300)")
  add("--clients", type=int, default=2, help="of gRPC, and as many of HTTP (default: 2)")
  add("--seed", type=int, default=1, help="of the bad clients")
  add("--growth_mib", type=float, default=20, help="of resident memory (default: 20)")
  add("--growth_threads", type=int, default=4, help="default: 4")
  add("--growth_files", type=int, default=4, help="open files and sockets (default: 4)")
  args = parser.parse_args(argv)
  folder = tempfile.mkdtemp()
  try:
    Soak(folder, args).run()
  except (SoakError, AssertionError) as e:
    print("soak failed: %s" % e)
    return 1
  finally:
    shutil.rmtree(folder, ignore_errors=True)
  print("soak passed")
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))

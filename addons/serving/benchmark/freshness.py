# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures the time from a training step to an answer that has it.

  bazel run //addons/serving/benchmark:freshness

Trains a table of --rows rows in this process and publishes a delta every --every seconds,
in which --changed rows have changed. A server of its own process follows. A client requests
the step of the served state all the time. Prints how old a step was when the first answer
had it, and the time of a training step with and without publishing.
"""

import os
import tempfile
import threading
import time

from absl import app
from absl import flags
import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis import prediction_service_pb2_grpc

import embedding_variable as ev

import served_model

FLAGS = flags.FLAGS
flags.DEFINE_integer("rows", 10 * 1000 * 1000, "Rows of the table.", lower_bound=1)
flags.DEFINE_integer("dim", 16, "Floats per row.", lower_bound=1)
flags.DEFINE_integer("changed", 100000, "Rows that change between deltas.", lower_bound=1)
flags.DEFINE_float("every", 2., "Seconds between deltas.")
flags.DEFINE_integer("deltas", 20, "Deltas that are measured.", lower_bound=1)
flags.DEFINE_integer("batch", 4096, "Ids of a training step.", lower_bound=1)


class _Training(object):
  """A table that is trained, in a session."""

  def __init__(self):
    v1 = tf.compat.v1
    self._ids = v1.placeholder(tf.int64, [None])
    step = v1.train.get_or_create_global_step()
    loss = tf.reduce_sum(self._scores(self._ids))
    self._train = v1.train.AdagradOptimizer(.1).minimize(loss, global_step=step)
    self._step = step
    self._random = np.random.RandomState(1)

  @staticmethod
  def _scores(ids):
    table = ev.get_embedding_variable("users", embedding_dim=FLAGS.dim)
    return tf.reduce_sum(tf.nn.embedding_lookup(table, ids), axis=1)

  def serving(self):
    """Builds the prediction graph, which has the step as an output."""
    v1 = tf.compat.v1
    ids = v1.placeholder(tf.int64, [None], name="ids")
    step = v1.train.get_or_create_global_step()
    return {"ids": ids}, {"score": self._scores(ids), "step": tf.identity(step)}

  def fill(self, session):
    for begin in range(0, FLAGS.rows, 1000000):
      session.run(self._train, {self._ids: np.arange(begin, min(FLAGS.rows, begin + 1000000))})

  def step(self, session, hot, ids=None):
    """Trains ids, or some of the hot ones; returns (step, seconds)."""
    ids = self._random.choice(hot, FLAGS.batch) if ids is None else ids
    begin = time.time()
    session.run(self._train, {self._ids: ids})
    return session.run(self._step), time.time() - begin


class _Client(object):
  """Requests the step all the time; `seen` is {step: time of its first answer}."""

  def __init__(self, port):
    self.seen, self._port, self._stop = {}, port, threading.Event()
    self._thread = threading.Thread(target=self._request)
    self._thread.start()

  def _request(self):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "default"
    request.inputs["ids"].CopyFrom(tf.compat.v1.make_tensor_proto([1], tf.int64))
    with grpc.insecure_channel("127.0.0.1:%d" % self._port) as channel:
      stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
      while not self._stop.wait(.01):
        answer = stub.Predict(request, timeout=60)
        step = int(tf.make_ndarray(answer.outputs["step"]))
        self.seen.setdefault(step, time.time())

  def stop(self):
    self._stop.set()
    self._thread.join()


def _train_until(training, session, end, hot):
  """Trains until a moment; returns the seconds of each step."""
  seconds = []
  while not seconds or time.time() < end:
    seconds.append(training.step(session, hot)[1])
  return seconds


def _measure(folder):
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    training = _Training()
    publisher = ev.publish.Publisher(os.path.join(folder, "models"), training.serving)
    publisher.build()
    session.run(tf.compat.v1.global_variables_initializer())
    training.fill(session)
    hot = np.random.RandomState(2).choice(FLAGS.rows, FLAGS.changed, replace=False)
    alone = _train_until(training, session, time.time() + 5 * FLAGS.every, hot)
    begin = time.time()
    publisher.full(session)
    print("full version: %.1f s, %d rows" % (time.time() - begin, FLAGS.rows), flush=True)
    with served_model.serving(os.path.join(folder, "models"), folder) as server:
      client = _Client(server.grpc_port)
      try:
        trained, during, published = {}, [], []
        for _ in range(FLAGS.deltas):
          seconds = _train_until(training, session, time.time() + FLAGS.every, hot)
          step, _ = training.step(session, None, hot)  # all of them change
          ended = time.time()
          begin = time.time()
          publisher.delta(session)
          published.append(time.time() - begin)
          trained[int(step)] = ended
          during += seconds
        last = max(trained)
        limit = time.time() + 60
        while last not in client.seen and time.time() < limit:
          time.sleep(.01)
      finally:
        client.stop()
      if last not in client.seen:
        raise RuntimeError("step %d was not served within 60 s" % last)
      ages = [client.seen[s] - trained[s] for s in trained if s in client.seen]
  print("delta: median %.2f s, most %.2f s, %d rows" % (
      np.median(published), max(published), FLAGS.changed))
  print("age of a step in the first answer that has it: median %.2f s, most %.2f s; "
        "%d of %d deltas were seen alone" % (np.median(ages), max(ages), len(ages),
                                             len(trained)))
  print("training step: median %.2f ms without a server, %.2f ms between deltas" % (
      1e3 * np.median(alone), 1e3 * np.median(during)))


def main(unused_argv):
  with tempfile.TemporaryDirectory(prefix="serving_freshness_") as folder:
    _measure(folder)


if __name__ == "__main__":
  app.run(main)

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A server follows a training session: deltas, refused deltas, requests meanwhile."""

import gc
import os
import re
import shutil
import threading
import time
from unittest import mock
import weakref

from absl.testing import absltest
from absl.testing import parameterized
import tensorflow as tf

import embedding_variable as ev
from embedding_variable_serving import testing
from embedding_variable_serving.models import saved_model

_KEYS = [1, 2, 3, -4, 77]
_PREDICT = "/v1/models/m:predict"


def _model():
  """Returns (table, ids, scores, rows, dense); a score is mean(row) + 1000 * dense."""
  v1 = tf.compat.v1
  table = ev.get_embedding_variable("users", testing.DIM, initializer=v1.zeros_initializer())
  ids = v1.placeholder(tf.int64, [None], name="ids")
  dense = v1.get_variable("dense", [], initializer=v1.zeros_initializer())
  rows = tf.nn.embedding_lookup(table, ids)
  return table, ids, tf.reduce_mean(rows, axis=1) + 1000 * dense, rows, dense


def _serving_fn():
  _, ids, scores, _, _ = _model()
  return {"ids": ids}, {"scores": scores}


class DeltasTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    v1 = tf.compat.v1
    self.folder = testing.folder()
    graph = tf.Graph()
    with graph.as_default():
      table, self.ids, self.scores, rows, dense = _model()
      step = v1.train.get_or_create_global_step()
      # Every run adds 1 to all elements of the rows and to the dense variable.
      self.train = v1.train.GradientDescentOptimizer(1.0).minimize(
          -tf.reduce_sum(rows) - dense, global_step=step)
      self.erased = v1.placeholder(tf.int64, [None])
      self.erase = table.erase(self.erased)
      init = v1.global_variables_initializer()
      self.session = v1.Session(graph=graph)
      self.addCleanup(self.session.close)
      self.publisher = ev.publish.Publisher(self.folder, _serving_fn)
      self.publisher.build()
      self.session.run(init)
    self.run_step()
    self.publisher.full(self.session)

  def run_step(self, keys=tuple(_KEYS)):
    self.session.run(self.train, {self.ids: list(keys)})

  def start(self, *flags):
    server = testing.start("--model_base_path=" + self.folder, "--model_name=m", *flags)
    self.addCleanup(server.stop, 5)
    self.assertTrue(server.manager.wait(["m"], 60))
    return server

  def expected(self):
    return self.session.run(self.scores, {self.ids: _KEYS}).tolist()

  def served(self, server):
    status, answer = testing.http(server, _PREDICT, {"instances": _KEYS})
    self.assertEqual(status, 200, answer)
    return answer["predictions"]

  def assert_serves(self, server, expected):
    end = time.time() + 30
    while self.served(server) != expected and time.time() < end:
      time.sleep(0.05)
    self.assertEqual(self.served(server), expected)

  def refusals(self, server):
    found = re.search(r'delta_count\{model_name="m",status="refused"\} (\d+)',
                      server._metrics.text().decode())
    return int(found.group(1)) if found else 0

  def test_a_file_system_of_tensorflow(self):
    try:
      tf.io.gfile.makedirs("ram://served")
    except tf.errors.UnimplementedError:
      self.skipTest("this TensorFlow has no file system in memory")
    self.folder = "ram://served/m"
    self.publisher = ev.publish.Publisher(self.folder, _serving_fn)
    self.publisher.full(self.session)
    server = self.start()
    self.assert_serves(server, self.expected())
    for publish in (self.publisher.delta, self.publisher.full, self.publisher.delta):
      self.run_step()
      publish(self.session)
      self.assert_serves(server, self.expected())

  def assert_refused(self, server, text, action):
    """Asserts that an action leads to one refused delta, which is logged once."""
    before = self.refusals(server)
    with self.assertLogs(level="ERROR") as logs:
      action()
      end = time.time() + 30
      while self.refusals(server) == before and time.time() < end:
        time.sleep(0.05)
      time.sleep(1.5)  # The server tries it again meanwhile.
    found = [line for line in logs.output if "keeps its state" in line]
    self.assertLen(found, 1)
    self.assertRegex(found[0], text)
    self.assertEqual(self.refusals(server), before + 1)

  def publish_and(self, change):
    """Publishes a delta, and calls change(prefix) before current.json names it."""
    original = ev.publications.write

    def write(folder, state):
      change(ev.publications.delta_prefix(folder, state, len(state["deltas"])))
      original(folder, state)

    with mock.patch.object(ev.publications, "write", write):
      self.publisher.delta(self.session)

  def test_answers_are_those_of_the_step(self):
    server = self.start()
    self.assertEqual(self.served(server), self.expected())
    for change in (self.run_step, lambda: self.run_step([77, 78]),
                   lambda: self.session.run(self.erase, {self.erased: [2, 3]}),
                   lambda: self.run_step([3])):
      change()
      self.publisher.delta(self.session)
      self.assert_serves(server, self.expected())
    late = self.start()  # Starts at the current state.
    self.assertEqual(self.served(late), self.expected())
    self.run_step()
    self.assertEqual(self.publisher.full(self.session), 2)
    self.assert_serves(server, self.expected())
    self.run_step()
    self.publisher.delta(self.session)
    for one in (server, late):
      self.assert_serves(one, self.expected())
      self.assertEqual(self.refusals(one), 0)

  def test_an_old_session_is_freed_without_a_collection_of_garbage(self):
    server = self.start()
    servable = server.manager._models["m"].versions[1].servable
    loaded = [weakref.ref(x) for x in (servable, servable.session, servable.session.graph)]
    del servable
    gc.disable()
    self.addCleanup(gc.enable)
    self.publisher.full(self.session)
    end = time.time() + 30
    while any(x() is not None for x in loaded) and time.time() < end:
      time.sleep(0.05)
    self.assertEqual([x() for x in loaded], [None] * 3)

  @parameterized.parameters("damaged", "truncated", "missing", "foreign")
  def test_refused_deltas(self, kind):
    server = self.start()
    self.run_step()
    first = self.publisher.delta(self.session)
    old = self.expected()
    self.assert_serves(server, old)
    self.run_step()
    data = ".data-00000-of-00001"

    def change(prefix):
      if kind == "damaged":
        with open(prefix + data, "r+b") as f:
          f.seek(5)
          f.write(b"\xff\xfe")
      elif kind == "truncated":
        os.truncate(prefix + data, 7)
      elif kind == "missing":
        os.remove(prefix + ".index")
      else:
        for suffix in (".index", data):
          shutil.copy(first + suffix, prefix + suffix)

    text = {"damaged": "is damaged", "truncated": "has 7 bytes, expected",
            "missing": "is missing", "foreign": "is damaged or another one"}[kind]
    self.assert_refused(server, "delta 2 of version 1 .*" + text,
                        lambda: self.publish_and(change))
    self.assertEqual(self.served(server), old)
    # A server that starts now has the state before that delta.
    late = self.start()
    self.assertEqual(self.served(late), old)
    # Later deltas continue the refused one.
    self.run_step()
    self.publisher.delta(self.session)
    time.sleep(0.3)
    self.assertEqual(self.served(server), old)
    # The next full version has all changes.
    self.publisher.full(self.session)
    for one in (server, late):
      self.assert_serves(one, self.expected())

  def test_a_delta_that_was_applied_in_part_is_not_served(self):
    server = self.start()
    apply_delta = saved_model.SavedModel.apply_delta

    def fail(servable, prefix):
      apply_delta(servable, prefix)
      raise MemoryError("no memory")  # not an error of TensorFlow

    with mock.patch.object(saved_model.SavedModel, "apply_delta", fail):
      self.run_step()
      self.assert_refused(server, "was applied in part: out of memory: no memory",
                          lambda: self.publisher.delta(self.session))
    status, answer = testing.http(server, _PREDICT, {"instances": _KEYS})
    self.assertEqual(status, 503)
    self.assertIn("was applied in part", answer["error"])
    self.publisher.full(self.session)
    end = time.time() + 30
    while testing.http(server, _PREDICT, {"instances": _KEYS})[0] != 200 and time.time() < end:
      time.sleep(0.05)
    self.assert_serves(server, self.expected())

  def test_a_delta_that_arrives_late(self):
    server = self.start()
    self.run_step()
    moved = []

    def hide(prefix):
      moved.extend([prefix + ".index", prefix + ".hidden"])
      os.rename(*moved)

    self.assert_refused(server, "is missing", lambda: self.publish_and(hide))
    os.rename(*reversed(moved))
    self.assert_serves(server, self.expected())

  def test_a_publication_that_was_interrupted(self):
    server = self.start()
    expected = self.expected()
    self.run_step()
    failed = mock.patch.object(ev.publications, "write", side_effect=OSError("disk is full"))
    for publish in (self.publisher.delta, self.publisher.full):
      with failed, self.assertRaises(OSError):
        publish(self.session)
    time.sleep(0.5)
    self.assertEqual(self.served(server), expected)
    self.assertEqual([v for v, _, _ in server.manager.status("m")], [1])
    self.assertEqual(self.publisher.full(self.session), 3)
    self.assert_serves(server, self.expected())

  @parameterized.parameters((), ("--enable_batching",))
  def test_no_answer_is_a_mix(self, *flags):
    server = self.start(*flags)
    done, found, failed = threading.Event(), set(), []

    def ask():
      while not done.is_set():
        status, answer = testing.http(server, _PREDICT, {"instances": _KEYS})
        if status != 200 or len(set(answer["predictions"])) != 1:
          failed.append(answer)
        else:
          found.add(answer["predictions"][0])

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
      thread.start()
    for i in range(12):
      self.run_step()
      if i == 6:
        self.publisher.full(self.session)
      else:
        self.publisher.delta(self.session)
      self.assert_serves(server, self.expected())
    done.set()
    for thread in threads:
      thread.join()
    self.assertEqual(failed, [])
    self.assertLessEqual(found, {1001. * step for step in range(1, 14)})
    self.assertGreater(len(found), 2)


if __name__ == "__main__":
  absltest.main()

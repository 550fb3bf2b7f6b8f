# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests starting, saving, moving and changing a server."""

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import types
from unittest import mock
import urllib.error
import urllib.request

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps
from hierarchical_parameter_server import testing

# Runs a saved graph with only the op library; nothing of the package is imported.
_OPEN = """
import sys
import tensorflow as tf
library, kind, path = sys.argv[1:]
tf.load_op_library(library)
with tf.Session() as session:
  if kind == "saved_model":
    tf.saved_model.load(session, [tf.saved_model.SERVING], path)
  else:
    graph = tf.GraphDef()
    with open(path, "rb") as f:
      graph.ParseFromString(f.read())
    tf.import_graph_def(graph, name="")
  rows = session.run("rows:0", {"ids:0": [1, 2, 99]})
assert not [m for m in sys.modules if m.startswith("hierarchical_parameter_server")]
print(rows.tolist())
"""


class ServingTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    hps.stop()
    self.folder = self.create_tempdir().full_path
    self.rows = np.arange(40, dtype=np.float32).reshape([10, 4])
    self.write("a", self.rows)
    self.write("b", np.ones([10, 2]))
    self.write("c", np.ones([10, 3]))

  def tearDown(self):
    os.environ.pop("HPS_PS_CONFIG_FILE", None)
    hps.stop()
    super().tearDown()

  def write(self, name, rows):
    testing.write_table(os.path.join(self.folder, name), np.arange(len(rows)), rows)

  def config(self, name="ps.json", models=None, **more):
    models = models or [testing.model("m", ["a", "b"], [4, 2], [-1., 0.], most=2),
                        testing.model("n", ["c"], [3])]
    return testing.write_config(os.path.join(self.folder, name), models, **more)

  def lookup(self, ids, model="m", table=0, width=4, path="", dtype=tf.int64, batch=1):
    with tf.Graph().as_default(), tf.Session() as session:
      layer = hps.LookupLayer(model, table, width, tf.float32, path, batch)
      return session.run(layer(tf.constant(ids, dtype)))

  def test_acceptance_05_two_models_three_tables(self):
    path = self.config()
    with tf.Graph().as_default(), tf.Session() as session:
      init = hps.Init(ps_config_file=path, global_batch_size=1024)
      self.assertEqual(session.run(init), b"OK")
      ids = tf.constant([[0, 3]], tf.int64)
      a, b, c = session.run([
          hps.LookupLayer("m", 0, 4, tf.float32)(ids),
          hps.LookupLayer("m", 1, 2, tf.float32)(ids),
          hps.LookupLayer("n", 0, 3, tf.float32)(ids)
      ])
    np.testing.assert_array_equal(a, self.rows[np.array([[0, 3]])])
    np.testing.assert_array_equal(b, np.ones([1, 2, 2]))
    np.testing.assert_array_equal(c, np.ones([1, 2, 3]))

  def test_acceptance_06_implicit_explicit_and_conflicting(self):
    with self.assertRaisesRegex(tf.errors.FailedPreconditionError, "no configuration"):
      self.lookup([1])
    path = self.config()
    np.testing.assert_array_equal(self.lookup([1], path=path), self.rows[[1]])
    np.testing.assert_array_equal(self.lookup([2]), self.rows[[2]])
    np.testing.assert_array_equal(self.lookup([2], path=path), self.rows[[2]])
    other = self.config("other.json", volatile_db={"type": "hash_map"})
    with self.assertRaisesRegex(tf.errors.FailedPreconditionError,
                                r"(?s)ps\.json.*other\.json"):
      self.lookup([1], path=other)
    np.testing.assert_array_equal(self.lookup([1]), self.rows[[1]])
    hps.stop()
    np.testing.assert_array_equal(self.lookup([1], path=other), self.rows[[1]])

  def open_elsewhere(self, kind, path, **environ):
    """Returns the rows that a new process looks up, or the text of its error."""
    done = subprocess.run(
        [sys.executable, "-c", _OPEN, hps.library_path(), kind, path],
        env=dict(os.environ, PYTHONPATH="", **environ), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode != 0:
      return done.stderr
    return np.array(eval(done.stdout))  # pylint: disable=eval-used

  @parameterized.parameters("saved_model", "frozen")
  def test_acceptance_07_a_saved_graph_moves(self, kind):
    config = self.config()
    saved = os.path.join(self.folder, "saved")
    with tf.Graph().as_default(), tf.Session() as session:
      ids = tf.placeholder(tf.int64, [None], "ids")
      rows = hps.LookupLayer("m", 0, 4, tf.float32, config)(ids)
      scale = tf.Variable(2., name="scale")
      rows = tf.identity(rows * scale, "rows")
      session.run(tf.global_variables_initializer())
      if kind == "saved_model":
        tf.saved_model.simple_save(session, saved, {"ids": ids}, {"rows": rows})
      else:
        graph = tf.graph_util.convert_variables_to_constants(
            session, session.graph_def, ["rows"])
        with open(saved, "wb") as f:
          f.write(graph.SerializeToString())
    expected = 2 * np.concatenate([self.rows[[1, 2]], -np.ones([1, 4])])
    np.testing.assert_array_equal(self.open_elsewhere(kind, saved), expected)
    # Moves model, configuration and tables.
    moved = os.path.join(self.create_tempdir().full_path, "elsewhere")
    shutil.move(self.folder, moved)
    os.makedirs(self.folder)  # needed to remove the test's temporary folder
    saved = os.path.join(moved, "saved")
    self.assertIn("ps.json", self.open_elsewhere(kind, saved))
    np.testing.assert_array_equal(
        self.open_elsewhere(
            kind, saved, HPS_PS_CONFIG_FILE=os.path.join(moved, "ps.json")), expected)

  def test_replicas_share_the_batch(self):
    path = self.config()
    horovod = types.ModuleType("horovod.tensorflow")
    horovod.size = lambda: 2
    with mock.patch.dict(sys.modules, {"horovod.tensorflow": horovod}):
      for batch, message in ((2049, "multiple of the 2 replicas, got 2049"),
                             (2050, "is 1025 samples on each of 2 replicas")):
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, message):
          hps.start(path, batch)
      hps.start(path, 2048)
      hps.stop()
    with tf.Graph().as_default(), tf.Session() as session:
      strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
      with strategy.scope():
        init = hps.Init(ps_config_file=path, global_batch_size=1024)
      self.assertEqual(session.run(init), b"OK")
      with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        with self.assertRaisesRegex(RuntimeError, "got OneDeviceStrategy"):
          hps.Init(ps_config_file=path)

  def test_a_running_graph_does_not_look_at_the_file_again(self):
    path = self.config()
    with tf.Graph().as_default(), tf.Session() as session:
      rows = hps.LookupLayer("m", 0, 4, tf.float32, path)(tf.constant([1], tf.int64))
      session.run(rows)
      os.remove(path)
      hps.reload_model("n")
      np.testing.assert_array_equal(session.run(rows), self.rows[[1]])
      hps.stop()
      with self.assertRaisesRegex(tf.errors.NotFoundError, "ps.json"):
        session.run(rows)

  def test_the_configuration_may_be_fed(self):
    with tf.Graph().as_default(), tf.Session() as session:
      fed = tf.placeholder_with_default("not/there.json", [])
      rows = hps.LookupLayer("m", 0, 4, tf.float32, fed)(tf.constant([1], tf.int64))
      with self.assertRaisesRegex(tf.errors.NotFoundError, "not/there.json"):
        session.run(rows)
      np.testing.assert_array_equal(session.run(rows, {fed: self.config()}),
                                    self.rows[[1]])

  def test_acceptance_08_what_is_wrong_raises(self):
    path = self.config()
    invalid = tf.errors.InvalidArgumentError
    for error, message, call in (
        (invalid, r"max_batch_size.* is 1024", dict(batch=1025)),
        (tf.errors.NotFoundError, "models 'm', 'n', got 'x'", dict(model="x")),
        (invalid, "tables 0 to 1, got 7", dict(table=7)),
        (invalid, "rows of 4 floats, got 5", dict(width=5)),
        (invalid, "is true, expected int64 ids, got int32", dict(dtype=tf.int32)),
        (invalid, r"at most 2048 ids .* got 2049", dict(ids=np.zeros([2049]))),
    ):
      arguments = dict(ids=[1], path=path)
      arguments.update(call)
      with self.assertRaisesRegex(error, "(?s)" + message):
        self.lookup(**arguments)
    np.testing.assert_array_equal(self.lookup([1], path=path), self.rows[[1]])
    hps.stop()
    short = self.config("short.json", supportlonglong=False)
    with self.assertRaisesRegex(invalid, "is false, expected int32 ids, got int64"):
      self.lookup([1], path=short)
    hps.stop()
    with open(os.path.join(self.folder, "b", "emb_vector"), "ab") as f:
      f.write(b"1234")
    with self.assertRaisesRegex(invalid, "(?s)table1.*emb_vector.*80 bytes, got 84"):
      self.lookup([1], path=path)
    with self.assertRaisesRegex(tf.errors.FailedPreconditionError, "no parameter server"):
      hps.metrics()
    with self.assertRaisesRegex(invalid, "gpucachper: unknown key"):
      self.lookup([1], path=self.config(
          "typo.json", [testing.model("m", ["a"], [4], gpucachper=1)]))

  def test_acceptance_09_many_callers(self):
    path = self.config()
    with tf.Graph().as_default(), tf.Session() as session:
      ids = tf.placeholder(tf.int64, [None])
      rows = hps.LookupLayer("m", 0, 4, tf.float32, path)(ids)
      wrong = []

      def call(seed):
        random = np.random.RandomState(seed)
        for _ in range(20):
          asked = random.randint(0, 10, 50)
          if not np.array_equal(session.run(rows, {ids: asked}), self.rows[asked]):
            wrong.append(asked)

      for callers in (1, 4, 16, 64):
        threads = [threading.Thread(target=call, args=(s,)) for s in range(callers)]
        for thread in threads:
          thread.start()
        for thread in threads:
          thread.join()
    self.assertEmpty(wrong)

  def lookups_per_second(self, call, callers, seconds):
    """Returns the lookups per second of `callers` threads; each thread checks its rows.
    """
    table = np.random.RandomState(1).normal(size=[50000, 32]).astype(np.float32)
    made, wrong, ready = [], [], threading.Barrier(callers + 1)

    def work(seed):
      ids = np.random.RandomState(seed).randint(0, len(table), 8192)
      found, count = call(ids), 0
      ready.wait()
      end = time.perf_counter() + seconds
      while time.perf_counter() < end:
        found = call(ids)
        count += 1
      made.append(count)
      if not np.array_equal(found, table[ids]):
        wrong.append(seed)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(callers)]
    for thread in threads:
      thread.start()
    ready.wait()
    begin = time.perf_counter()
    for thread in threads:
      thread.join()
    self.assertEmpty(wrong)
    # Lookups that started in time are counted, and so is their time.
    return sum(made) / (time.perf_counter() - begin)

  def test_acceptance_09_throughput_of_many_callers(self):
    rows = np.random.RandomState(1).normal(size=[50000, 32])
    self.write("wide", rows)
    path = self.config("wide.json", [testing.model("w", ["wide"], [32], most=8)])
    with tf.Graph().as_default(), tf.Session() as session:
      ids = tf.placeholder(tf.int64, [None])
      call = session.make_callable(hps.LookupLayer("w", 0, 32, tf.float32, path)(ids), [ids])
      # Other programs use the CPU at times, so the ratio is measured up to eight times,
      # each time next to a single caller. A real collapse shows every time.
      for callers in (4, 16, 64):
        ratios = []
        for _ in range(8):
          one = self.lookups_per_second(call, 1, .3)
          ratios.append(self.lookups_per_second(call, callers, .3) / one)
          if ratios[-1] >= .85:
            break
        print("%d callers: %s of one's throughput" % (callers, ratios))
        self.assertGreaterEqual(max(ratios), .85, "%d callers: %s" % (callers, ratios))

  def test_models_are_added_reloaded_and_removed(self):
    hps.start(self.config())
    with tf.Graph().as_default(), tf.Session() as session:
      rows = hps.LookupLayer("m", 0, 4, tf.float32)(tf.constant([1], tf.int64))
      np.testing.assert_array_equal(session.run(rows), self.rows[[1]])
      self.write("a", self.rows + 1)
      np.testing.assert_array_equal(session.run(rows), self.rows[[1]])
      hps.reload_model("m")
      np.testing.assert_array_equal(session.run(rows), self.rows[[1]] + 1)
      hps.push_rows("m", "table0", [1, 77], [[5, 6, 7, 8], [1, 1, 1, 1]])
      np.testing.assert_array_equal(session.run(rows), [[5, 6, 7, 8]])
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "4 floats, got an"):
        hps.push_rows("m", "table0", [1], [[1., 2.]])
      more = self.config("more.json", [testing.model("o", ["b"], [2])])
      hps.add_models(more)
      np.testing.assert_array_equal(self.lookup([0], "o", 0, 2), [[1, 1]])
      with self.assertRaises(tf.errors.AlreadyExistsError):
        hps.add_models(more)
      hps.remove_model("m")
      with self.assertRaisesRegex(tf.errors.NotFoundError, "got 'm'"):
        session.run(rows)
      with self.assertRaises(tf.errors.NotFoundError):
        hps.remove_model("m")

  def test_metrics_and_check(self):
    path = self.config(volatile_db={"type": "hash", "allocation_rate": 1})
    checked = hps.check(path)
    self.assertEmpty(checked["errors"])
    self.assertIn("volatile_db.allocation_rate", checked["notes"][0])
    self.assertEqual([t["rows"] for t in checked["plan"]["tables"]], [10, 10, 10])
    hps.start(path)
    self.assertEqual(hps.notes(), checked["notes"])
    self.lookup([1, 2, 55])
    server = hps.serve_metrics(0)
    try:
      address = "http://127.0.0.1:%d/metrics" % server.server_port
      text = urllib.request.urlopen(address).read().decode()
    finally:
      server.shutdown()
      server.server_close()
    self.assertIn('hps_keys_total{model="m",table="table0"} 3', text)
    self.assertIn('hps_default_rows_total{model="m",table="table0"} 1', text)
    self.assertIn('hps_rows{model="n",table="table0",tier="volatile"} 10', text)
    self.assertIn('hps_lookup_seconds_count{model="m",table="table0"} 1', text)
    shutil.rmtree(os.path.join(self.folder, "b"))
    self.assertIn("'table1'", hps.check(path)["errors"][0])
    self.assertIn("cannot read", hps.check("none.json")["errors"][0])

  def test_metrics_and_health_over_http(self):
    hps.start(self.config())
    server = hps.serve_metrics(0, address="0.0.0.0")
    self.addCleanup(server.server_close)
    self.addCleanup(server.shutdown)
    self.assertEqual(server.server_address[0], "0.0.0.0")

    def get(path):
      try:
        url = "http://127.0.0.1:%d%s" % (server.server_port, path)
        answer = urllib.request.urlopen(url, timeout=30)
        return answer.status, answer.read().decode()
      except urllib.error.HTTPError as e:
        return e.code, e.read().decode()

    # A client that sends nothing does not block others.
    with socket.create_connection(("127.0.0.1", server.server_port)):
      self.assertEqual(get("/healthz"), (200, "ok\n"))
      self.assertIn("hps_rows{", get("/metrics")[1])
    self.assertEqual(get("/other")[0], 404)
    hps.stop()
    for path in ("/healthz", "/metrics"):
      code, text = get(path)
      self.assertEqual(code, 503)
      self.assertIn("no parameter server", text)

  def test_version(self):
    self.assertRegex(hps.__version__, r"^\d+\.\d+\.\d+$")


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Publications of a training session: files, interruptions, the hook, the command line."""

import contextlib
import gc
import io
import json
import os
import tempfile
from unittest import mock

from absl.testing import absltest
import numpy as np

import embedding_variable as ev
from embedding_variable import tf_names
from embedding_variable.checkpoint_format import bundle_reader
from embedding_variable.checkpoint_format import checkpoint_tables
from embedding_variable.checkpoint_format import errors
from embedding_variable.checkpoint_format import publication_checks
from embedding_variable.checkpoint_format import publications
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.tf_names import tf
from embedding_variable.tools import main

_KEYS = list(range(-3, 8))


def _model():
  """Returns (ids, score) of a model with a table and a dense variable."""
  table = ev.get_embedding_variable("users", 4, initializer=tf.ones_initializer())
  ids = tf.placeholder(tf.int64, [None], name="ids")
  scale = tf.get_variable("scale", [], initializer=tf.ones_initializer())
  return table, ids, tf.reduce_sum(tf.nn.embedding_lookup(table, ids), axis=1) * scale


def _serving_fn():
  _, ids, score = _model()
  return {"ids": ids}, {"score": score}


class PublisherTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = os.path.join(tempfile.mkdtemp(dir=absltest.get_default_test_tmpdir()), "m")
    self.graph = tf.Graph()
    graph = self.graph.as_default()
    graph.__enter__()
    self.addCleanup(graph.__exit__, None, None, None)
    self.table, self.ids, self.score = _model()
    self.step = tf.train.get_or_create_global_step()
    optimizer = tf.train.AdagradOptimizer(0.1)
    self.train = optimizer.minimize(tf.reduce_sum(self.score), global_step=self.step)
    self.keys = tf.placeholder(tf.int64, [None], name="erased")
    self.erase = self.table.erase(self.keys)

  def session(self):
    session = tf.Session(graph=self.graph)
    self.addCleanup(session.close)
    session.run(tf.global_variables_initializer())
    return session

  def current(self):
    return publications.read(self.folder)

  def loaded(self, version):
    """Returns the scores of _KEYS by a version without its deltas."""
    with tf.Session(graph=tf.Graph()) as session:
      tf.saved_model.load(session, ["serve"], os.path.join(self.folder, str(version)))
      return session.run("mul:0", {"ids:0": _KEYS})

  def test_full_and_deltas(self):
    publisher = ev.publish.Publisher(self.folder, _serving_fn)
    self.assertEqual(publisher.plan(), {
        "folder": self.folder, "version": 1, "tables": ["users"], "variables": ["scale"]})
    self.assertFalse(os.path.exists(self.folder))
    session = self.session()
    with self.assertRaisesRegex(ValueError, "call full"):
      publisher.delta(session)
    session.run(self.train, {self.ids: [1, 2]})
    self.assertEqual(publisher.full(session), 1)
    expected = session.run(self.score, {self.ids: _KEYS})
    np.testing.assert_array_equal(self.loaded(1), expected)
    names = [n for n, _ in tf.train.list_variables(publications.stored_prefix(self.folder, 1))]
    self.assertFalse([n for n in names if "Adagrad" in n])
    session.run(self.train, {self.ids: [2, 3]})
    prefix = publisher.delta(session)
    state = self.current()
    self.assertEqual((state["version"], state["step"], state["full"]["step"]), (1, 2, 1))
    self.assertEqual(publication_checks.check_delta(self.folder, state, 1), prefix)
    delta = tf.train.load_checkpoint(prefix)
    self.assertCountEqual(delta.get_tensor("users-sparse_incr_keys"), [2, 3])
    session.run(self.train, {self.ids: [4]})
    session.run(self.erase, {self.keys: [2]})
    delta = tf.train.load_checkpoint(publisher.delta(session))
    self.assertCountEqual(delta.get_tensor("users-sparse_incr_keys"), [4])
    self.assertCountEqual(delta.get_tensor("users-sparse_incr_erased_keys"), [2])
    self.assertEqual(self.current()["step"], 3)
    # The version stays as it was written.
    np.testing.assert_array_equal(self.loaded(1), expected)
    with contextlib.redirect_stdout(io.StringIO()) as out:
      self.assertEqual(main.main(["publish", "--check", self.folder]), 0)
    self.assertIn("version 1, step 3", out.getvalue())

  def test_rows_in_fewer_bytes(self):
    with self.assertRaisesRegex(ValueError, "row_type: expected one of float32, .*'int8'"):
      ev.publish.Publisher(self.folder, _serving_fn, row_type="int8")
    session = self.session()
    values = self.table.export()
    scale = [v for v in tf.global_variables() if v.op.name == "scale"][0]
    good, bad = (tf.assign(scale, x) for x in (1., np.nan))
    for row_type, stored, width in (("float16", tf.float16, 4), ("uint8", tf.uint8, 8)):
      publisher = ev.publish.Publisher(self.folder, _serving_fn, row_type=row_type)
      session.run(self.train, {self.ids: [1, 2, -3]})
      version = publisher.full(session)
      session.run(self.train, {self.ids: [2, 7]})
      prefix = publisher.delta(session)
      expected = session.run(self.score, {self.ids: _KEYS})
      full = publications.stored_prefix(self.folder, version)
      for path, name in ((full, "users-values"), (prefix, "users-sparse_incr_values")):
        reader = tf.train.load_checkpoint(path)
        self.assertEqual(reader.get_variable_to_dtype_map()[name], stored)
        self.assertEqual(reader.get_variable_to_shape_map()[name][1], width)
      publication_checks.check_full(self.folder, self.current(), True)
      publication_checks.check_delta(self.folder, self.current(), 1)
      with tf.Session(graph=tf.Graph()) as served:
        tf.saved_model.load(served, ["serve"], os.path.join(self.folder, str(version)))
        served.run(["save/deltas/restore_tables", "save/deltas/restore_others"],
                   {"save/deltas/prefix:0": prefix})
        np.testing.assert_allclose(
            served.run("mul:0", {"ids:0": _KEYS}), expected, rtol=2e-3)
      table = checkpoint_tables.Checkpoint(full, deltas=[prefix]).table("users")
      trained = session.run(values)
      order = np.argsort(trained.keys)
      keys = table.column(tensor_names.KEYS)
      np.testing.assert_array_equal(np.sort(keys), trained.keys[order])
      rows = table.column(tensor_names.VALUES)
      self.assertEqual(rows.dtype, np.float32)
      np.testing.assert_allclose(rows[np.argsort(keys)], trained.values[order], rtol=1e-3)
      session.run(bad)
      session.run(self.train, {self.ids: [5]})
      for publish in (publisher.delta, publisher.full):
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "key 5: expected a row"):
          publish(session)
      session.run(good)
      session.run(self.erase, {self.keys: [5]})
      publisher.full(session)

  def test_old_versions_are_removed(self):
    publisher = ev.publish.Publisher(self.folder, _serving_fn, keep=2)
    session = self.session()
    self.assertEqual([publisher.full(session) for _ in range(3)], [1, 2, 3])
    self.assertCountEqual(os.listdir(self.folder), ["2", "3", "current.json"])

  def test_interrupted_publications(self):
    publisher = ev.publish.Publisher(self.folder, _serving_fn)
    session = self.session()
    publisher.full(session)
    session.run(self.train, {self.ids: [1]})
    with open(os.path.join(self.folder, "current.json")) as f:
      before = f.read()
    failed = mock.patch.object(publications, "write", side_effect=OSError("disk is full"))
    for publish in (publisher.delta, publisher.full):
      with failed, self.assertRaisesRegex(OSError, "disk is full"):
        publish(session)
      with open(os.path.join(self.folder, "current.json")) as f:
        self.assertEqual(f.read(), before)
      publication_checks.check_full(self.folder, self.current(), True)
      self.assertFalse(publisher.can_continue)
    # Another process finds version 2, which current.json does not name.
    for name in ("3.part", "4.part"):  # A killed publication's.
      os.makedirs(os.path.join(self.folder, name, "left"))
    other = ev.publish.Publisher(self.folder, _serving_fn)
    self.assertEqual(other.full(session), 3)
    self.assertCountEqual(os.listdir(self.folder), ["2", "3", "current.json"])
    self.assertCountEqual(os.listdir(os.path.join(self.folder, "3")),
                          ["saved_model.pb", "variables"])

  def test_a_file_system_without_renames_of_folders(self):
    try:
      tf.gfile.MakeDirs("ram://publications/a")
    except tf.errors.UnimplementedError:
      self.skipTest("this TensorFlow has no file system in memory")
    self.folder = "ram://publications/m"
    publisher = ev.publish.Publisher(self.folder, _serving_fn, keep=1)
    session = self.session()
    for version in (1, 2):
      self.assertEqual(publisher.full(session), version)
      session.run(self.train, {self.ids: [1]})
      publisher.delta(session)
      state = self.current()
      self.assertEqual((state["version"], state["step"]), (version, version))
      publication_checks.check_full(self.folder, state, with_tensors=True)
      self.assertEqual(publication_checks.check_delta(self.folder, state, 1),
                       publications.delta_prefix(self.folder, state, 1))
    self.assertFalse(tf.gfile.Exists(self.folder + "/1/saved_model.pb"))

  def test_damage_is_found(self):
    publisher = ev.publish.Publisher(self.folder, _serving_fn)
    session = self.session()
    publisher.full(session)
    session.run(self.train, {self.ids: [1]})
    prefix = publisher.delta(session)
    data = prefix + ".data-00000-of-00001"
    with open(data, "r+b") as f:
      f.seek(3)
      f.write(b"\xff")
    for damage, text in ((None, "is damaged"),
                         (lambda: os.truncate(data, 5), "5 bytes, expected"),
                         (lambda: os.remove(prefix + ".index"), "missing")):
      if damage:
        damage()
      with self.assertRaisesRegex(errors.CheckpointError, "delta 1 of version 1 .*" + text):
        publication_checks.check_delta(self.folder, self.current(), 1)
      self.assertEqual(main.main(["publish", "--check", self.folder]), 2)
    with open(os.path.join(self.folder, "1", "saved_model.pb"), "ab") as f:
      f.write(b"x")
    with self.assertRaisesRegex(errors.CheckpointError, "version 1 is damaged"):
      publication_checks.check_full(self.folder, self.current())
    for text in ("", "[]", "{}", json.dumps(dict(self.current(), deltas=[{}]))):
      with open(os.path.join(self.folder, "current.json"), "w") as f:
        f.write(text)
      with self.assertRaisesRegex(errors.CheckpointError, "current.json"):
        self.current()

  def test_publications_keep_no_memory(self):
    publisher = ev.publish.Publisher(self.folder, _serving_fn, keep=1)
    session = self.session()
    before = 0
    for _ in range(12):
      publisher.full(session)
      publisher.delta(session)
      gc.collect()
      before = before or len(gc.get_objects())
    self.assertLess(len(gc.get_objects()) - before, 10)

  def test_checks_keep_no_memory(self):
    publisher = ev.publish.Publisher(self.folder, _serving_fn)
    session = self.session()
    publisher.full(session)
    session.run(self.train, {self.ids: [1]})
    publisher.delta(session)
    before = 0
    for _ in range(20):
      publication_checks.check_full(self.folder, self.current(), True)
      publication_checks.check_delta(self.folder, self.current(), 1)
      gc.collect()
      before = before or len(gc.get_objects())
    self.assertLess(len(gc.get_objects()) - before, 100)

  def test_maps_of_a_checkpoint(self):
    for partitioner in (None, tf.fixed_size_partitioner(2)):
      with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("a/b", [4, 3], partitioner=partitioner)
        for value in (True, 7, np.int64(7), .5, np.float64(.5), b"text", [[]]):
          tf.Variable(value)
        session.run(tf.global_variables_initializer())
        prefix = tf.train.Saver().save(session, self.folder)
      reader = tf.train.load_checkpoint(prefix)
      self.assertEqual(
          bundle_reader.maps(reader),
          (reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()))

  def test_wrong_graphs(self):
    def more():
      tf.get_variable("more", [])
      return _serving_fn()

    def dense():
      return {}, {"y": tf.get_variable("scale", []) + 0}

    for make, text in ((more, "variable 'more', which"), (dense, "no embedding variable"),
                       (lambda: None, "must return")):
      with self.assertRaisesRegex(ValueError, text):
        ev.publish.Publisher(self.folder, make).build()

  def test_publishers_of_eager_execution(self):
    # A graph of 2.x, or 1.15, which has no tables in eager execution.
    error = RuntimeError if tf_names.has_eager_tables() else NotImplementedError
    with self.assertRaisesRegex(error, "use Publisher"):
      ev.publish.EagerPublisher(self.folder, None)
    self.assertEqual(ev.publish.Publisher(self.folder, _serving_fn).full(self.session()), 1)
    error = ValueError if tf_names.has_eager_tables() else NotImplementedError
    with self.assertRaisesRegex(error, "saved_model.load"):
      ev.publish.load(self.folder)
    callback = ev.publish.PublishCallback(mock.Mock(), every_steps=1, step=mock.Mock())
    callback.on_train_begin()

  def test_hook(self):
    publisher = ev.publish.Publisher(self.folder, _serving_fn, keep=9)
    published, seen = [], []
    hook = ev.publish.PublishHook(publisher, every_steps=2, full_every=2,
                                  after=lambda: published.append(self.current()["step"]))
    with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
      for _ in range(6):
        session.run(self.train, {self.ids: [1]})
        state = self.current()
        seen.append((state["version"], state["step"], len(state["deltas"])))
    self.assertEqual(seen, [(1, 1, 0), (1, 1, 0), (1, 3, 1), (1, 3, 1), (2, 5, 0), (2, 5, 0)])
    state = self.current()
    self.assertEqual((state["version"], state["step"], len(state["deltas"])), (2, 6, 1))
    publication_checks.check_delta(self.folder, state, 1)
    self.assertEqual(published, [1, 3, 5, 6])

  def test_estimator(self):
    if not hasattr(tf, "estimator"):
      self.skipTest("this TensorFlow has no Estimators")

    def model_fn(features, labels, mode):
      table = ev.get_embedding_variable("users", 4, initializer=tf.ones_initializer())
      score = tf.reduce_sum(tf.nn.embedding_lookup(table, features["ids"]), axis=1)
      if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"score": score})
      loss = tf.reduce_mean(tf.square(score - labels))
      train = tf.train.AdagradOptimizer(0.1).minimize(loss, tf.train.get_global_step())
      return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    def serving_fn():
      ids = tf.placeholder(tf.int64, [None], name="ids")
      spec = model_fn({"ids": ids}, None, tf.estimator.ModeKeys.PREDICT)
      return {"ids": ids}, spec.predictions

    publisher = ev.publish.Publisher(self.folder, serving_fn)
    estimator = tf.estimator.Estimator(model_fn, self.folder + "-checkpoints")
    data = lambda: tf.data.Dataset.from_tensors(({"ids": [1, 2]}, [0., 0.])).repeat()
    with tf.Graph().as_default():
      for _ in range(2):
        estimator.train(data, [ev.publish.PublishHook(publisher, every_steps=2)], steps=3)
    state = self.current()
    self.assertEqual((state["version"], state["step"]), (2, 6))
    self.assertEqual([entry["step"] for entry in [state["full"]] + state["deltas"]], [4, 6])
    publication_checks.check_delta(self.folder, state, 1)


if __name__ == "__main__":
  absltest.main()

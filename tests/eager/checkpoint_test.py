# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `tf.train.Checkpoint` with eager tables."""

import glob
import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable
import eager_models as models

_OPTIMIZERS = {
    "of tf.train": lambda: tf.compat.v1.train.AdamOptimizer(.1),
    "adam": lambda: tf.keras.optimizers.Adam(.1),
    "adagrad": lambda: tf.keras.optimizers.Adagrad(.1),
}


def _checkpoint(model):
  return tf.train.Checkpoint(users=model.users, items=model.items, weight=model.weight,
                             optimizer=model.optimizer)


class CheckpointTest(parameterized.TestCase):

  @parameterized.parameters(
      [(name, mode) for name in sorted(_OPTIMIZERS) for mode in models.MODES])
  def test_training_goes_on_to_the_bit(self, name, mode):
    model = models.Model(_OPTIMIZERS[name]())
    model.train(mode)
    manager = tf.train.CheckpointManager(
        _checkpoint(model), self.create_tempdir().full_path, max_to_keep=2)
    path = manager.save()
    expected = model.train(mode)
    _checkpoint(model).restore(path).assert_existing_objects_matched()
    self.assertEqual(expected, model.train(mode))
    fresh = models.Model(_OPTIMIZERS[name]())
    _checkpoint(fresh).restore(path)
    self.assertEqual(expected, fresh.train(mode))

  def test_slots_are_kept_that_no_optimizer_has_used(self):
    model = models.Model(tf.keras.optimizers.Adagrad(.1))
    model.train("eager")
    folder = self.create_tempdir().full_path
    path = _checkpoint(model).save(os.path.join(folder, "first"))
    expected = model.train("eager")
    between = models.Model(tf.keras.optimizers.Adagrad(.1))
    _checkpoint(between).restore(path)
    again = _checkpoint(between).save(os.path.join(folder, "second"))
    last = models.Model(tf.keras.optimizers.Adagrad(.1))
    tf.train.Checkpoint(users=last.users, items=last.items, weight=last.weight).restore(again)
    slot = tf.train.load_checkpoint(again).get_tensor("users/accumulator-values")
    np.testing.assert_array_equal(
        slot, tf.train.load_checkpoint(path).get_tensor("users/accumulator-values"))
    np.testing.assert_allclose(expected[0], last.train("eager", 1)[0], rtol=1e-6)

  def test_a_checkpoint_of_a_graph(self):
    v1 = tf.compat.v1
    prefix = os.path.join(self.create_tempdir().full_path, "model.ckpt")
    with tf.Graph().as_default(), v1.Session() as session:
      table = v1.get_embedding_variable("of_graph", 4, initializer=models.rows(0, 4))
      rows = tf.nn.embedding_lookup(table, tf.constant([5, -5], tf.int64))
      train = v1.train.AdagradOptimizer(.1).minimize(tf.reduce_sum(rows ** 2))
      session.run(v1.global_variables_initializer())
      session.run(train)
      v1.train.Saver().save(session, prefix)
      expected = session.run(rows)
    table = v1.get_embedding_variable("eager", 4)
    embedding_variable.restore(table, prefix, "of_graph")
    keys = tf.constant([5, -5], tf.int64)
    self.assertEqual(expected.tolist(),
                     tf.nn.embedding_lookup(table, keys).numpy().tolist())
    self.assertEqual(["Adagrad"], sorted(table.restored_columns))

  def test_an_eager_checkpoint_in_a_graph(self):
    v1 = tf.compat.v1
    model = models.Model(v1.train.AdagradOptimizer(.1))
    model.train("eager")
    path = tf.train.Checkpoint(users=model.users).save(
        os.path.join(self.create_tempdir().full_path, "ckpt"))
    keys = models.ids().values
    expected = tf.nn.embedding_lookup(model.users, keys).numpy()
    keys = keys.numpy()
    with tf.Graph().as_default(), v1.Session() as session:
      table = v1.get_embedding_variable("users", 4)
      rows = tf.nn.embedding_lookup(table, tf.constant(keys))
      v1.train.Saver([table]).restore(session, path)
      self.assertEqual(expected.tolist(), session.run(rows).tolist())

  def test_another_length_of_rows(self):
    model = models.Model(tf.keras.optimizers.SGD(.1))
    model.train("eager", 1)
    path = tf.train.Checkpoint(t=model.users).save(
        os.path.join(self.create_tempdir().full_path, "ckpt"))
    other = tf.compat.v1.get_embedding_variable("other", 5)
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "other"):
      tf.train.Checkpoint(t=other).restore(path)

  def test_a_missing_name(self):
    model = models.Model(tf.keras.optimizers.SGD(.1))
    path = tf.train.Checkpoint(t=model.users).save(
        os.path.join(self.create_tempdir().full_path, "ckpt"))
    with self.assertRaisesRegex(tf.errors.NotFoundError, "missing"):
      embedding_variable.restore(model.users, path, "missing")

  @parameterized.parameters("save", "write", "manager")
  def test_an_asynchronous_save_has_the_rows_of_its_moment(self, how):
    model, saved = models.Model(tf.keras.optimizers.Adam(.1)), []
    model.train("eager")
    folder, checkpoint = self.create_tempdir().full_path, _checkpoint(model)
    options = tf.train.CheckpointOptions(
        experimental_enable_async_checkpoint=True)
    if hasattr(options, "experimental_write_callbacks"):
      options.experimental_write_callbacks = [saved.append]
    if how == "manager":
      path = tf.train.CheckpointManager(checkpoint, folder, 2).save(options=options)
    else:
      path = getattr(checkpoint, how)(folder + "/c", options)
    expected = model.train("eager")
    if saved or hasattr(options, "experimental_write_callbacks"):
      self.assertEqual([path], saved)
    self.assertTrue(options.experimental_enable_async_checkpoint)
    fresh = models.Model(tf.keras.optimizers.Adam(.1))
    _checkpoint(fresh).restore(path)
    self.assertEqual(expected, fresh.train("eager"))

  def test_an_asynchronous_save_without_a_table(self):
    root, folder = tf.train.Checkpoint(dense=tf.Variable([1.])), self.create_tempdir().full_path
    options = tf.train.CheckpointOptions(experimental_enable_async_checkpoint=True)
    root.write(folder + "/first", options=options)
    root.table = tf.compat.v1.get_embedding_variable("t", 4)
    root.table.import_rows([5], np.ones([1, 4], np.float32))
    root.write(file_prefix=folder + "/second", options=options)
    self.assertIn("dense/.ATTRIBUTES/VARIABLE_VALUE",
                  dict(tf.train.list_variables(folder + "/first")))
    self.assertIn("table-values", dict(tf.train.list_variables(folder + "/second")))
    root.table.import_rows([], np.ones([0, 4], np.float32))
    root.restore(save_path=folder + "/second")
    self.assertEqual([5], root.table.export().keys.numpy().tolist())

  @parameterized.parameters(
      {"experimental_io_device": "/job:localhost"},
      {"experimental_write_callbacks": [lambda path: None, lambda: None]},
      {"experimental_sharding_callback": "MaxShardSizePolicy"},
      {"experimental_sharding_callback": "ShardByTaskPolicy"},
      {"experimental_skip_slot_variables": True})
  def test_other_options(self, **options):
    for name, value in options.items():
      if not hasattr(tf.train.CheckpointOptions(), name):
        self.skipTest("this TensorFlow has no " + name)
      if name == "experimental_sharding_callback":
        policy = getattr(tf.train.experimental, value)
        options[name] = policy(100) if value == "MaxShardSizePolicy" else policy()
    options = tf.train.CheckpointOptions(**options)
    model = models.Model(tf.keras.optimizers.Adagrad(.1))
    model.train("eager")
    path = _checkpoint(model).save(
        os.path.join(self.create_tempdir().full_path, "c"), options=options)
    expected = model.train("eager")
    fresh = models.Model(tf.keras.optimizers.Adagrad(.1))
    _checkpoint(fresh).restore(path, options=options)
    self.assertEqual(expected, fresh.train("eager"))

  def test_a_table_of_a_graph(self):
    with tf.Graph().as_default():
      table = tf.compat.v1.get_embedding_variable("t", 4)
      with self.assertRaisesRegex(TypeError, "'t.*tf.train.Saver"):
        embedding_variable.restore(table, "ckpt", "t")


class DamageTest(parameterized.TestCase):
  """After a restore that fails, the table works and an older checkpoint can be restored."""

  def setUp(self):
    super(DamageTest, self).setUp()
    self._folder = self.create_tempdir().full_path
    self._model = models.Model(tf.keras.optimizers.Adagrad(.1))
    self._model.train("eager")
    self._good = self._save("good")
    self._expected = self._model.train("eager")
    self._bad = self._save("bad")
    # Restored, and not used by an optimizer yet.
    self._fresh = models.Model(tf.keras.optimizers.Adagrad(.1))
    tf.train.Checkpoint(model=self._fresh).restore(self._good)

  def _save(self, name):
    return tf.train.Checkpoint(model=self._model).write(os.path.join(self._folder, name))

  def _damage(self, kind):
    values = tf.train.load_checkpoint(self._bad).get_tensor("model/users-values").tobytes()
    index = self._bad + ".index"
    for data in glob.glob(self._bad + ".data-*"):
      with open(data, "rb") as f:
        place = f.read().find(values)
      if place >= 0:
        break
    if kind in ("truncated data", "truncated index"):
      path, size = (data, place) if kind == "truncated data" else (index, 100)
      os.truncate(path, size)
    elif kind == "no data":
      os.remove(data)
    else:  # flips bits of rows
      with open(data, "r+b") as f:
        f.seek(place)
        f.write(bytes(255 - x for x in values[:8]))

  @parameterized.parameters("truncated data", "truncated index", "no data", "flipped bits")
  def test_a_damaged_checkpoint(self, kind):
    self._damage(kind)
    table, before = self._fresh.users, self._fresh.users.export()
    slots = dict(table.restored_columns)
    self.assertLen(slots, 1)
    with self.assertRaises(Exception) as raised:
      embedding_variable.restore(table, self._bad, "model/users")
    found = table.export()
    if kind == "flipped bits":
      self.assertRegex(str(raised.exception), "'users'.*The table is empty now")
      self.assertEqual(0, len(found.keys))
      self.assertEqual({}, dict(table.restored_columns))
    else:
      np.testing.assert_array_equal(before.keys, found.keys)
      np.testing.assert_array_equal(before.values, found.values)
      self.assertEqual(slots, dict(table.restored_columns))
      self.assertEqual(self._expected[:1], self._fresh.train("eager", 1))
    tf.train.Checkpoint(model=self._fresh).restore(self._good)
    self.assertEqual(self._expected, self._fresh.train("eager"))

  def test_a_checkpoint_without_one_of_the_tables(self):
    path = tf.train.Checkpoint(users=self._model.users).write(
        os.path.join(self._folder, "one"))
    before = self._fresh.users.export()
    checkpoint = tf.train.Checkpoint(users=self._fresh.users)
    with self.assertRaisesRegex(tf.errors.NotFoundError, "missing"):
      embedding_variable.restore(self._fresh.users, path, "missing")
    np.testing.assert_array_equal(before.values, self._fresh.users.export().values)
    self.assertLen(self._fresh.users.restored_columns, 1)
    checkpoint.restore(path)
    np.testing.assert_array_equal(self._model.users.export().values,
                                  self._fresh.users.export().values)


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `tf.train.Checkpoint` with eager tables."""

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

  def test_a_table_of_a_graph(self):
    with tf.Graph().as_default():
      table = tf.compat.v1.get_embedding_variable("t", 4)
      with self.assertRaisesRegex(TypeError, "'t.*tf.train.Saver"):
        embedding_variable.restore(table, "ckpt", "t")


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of SOK's variables, optimizers and files in eager execution."""

import datetime

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import eager_models as models
import sparse_operation_kit as sok


def _ids():
  return tf.ragged.constant([[1, 2], [3]], dtype=tf.int64)


def _train(variables, optimizer, steps=2):
  """Trains tables on the sum of squares of their pooled rows; returns the last loss."""
  for _ in range(steps):
    with tf.GradientTape() as tape:
      pooled = sok.lookup_sparse(variables, [_ids()] * len(variables),
                                 combiners=["sum"] * len(variables))
      loss = tf.add_n([tf.reduce_sum(p ** 2) for p in pooled])
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
  return float(loss)


class VariablesTest(parameterized.TestCase):

  def setUp(self):
    super(VariablesTest, self).setUp()
    self.dynamic = sok.DynamicVariable(dimension=4, initializer="ones")
    self.static = sok.Variable(np.ones([10, 3], np.float32))

  def test_kinds(self):
    dense = tf.Variable(1.)
    self.assertEqual(([self.dynamic, self.static], [dense]),
                     sok.filter_variables([self.dynamic, dense, self.static]))
    self.assertIsInstance(self.dynamic, sok.DynamicVariable)
    self.assertIsInstance(self.static, sok.DistributedVariable)

  @parameterized.named_parameters(
      ("keras", lambda: tf.keras.optimizers.Adam(.1)),
      ("wrapped", lambda: sok.OptimizerWrapper(tf.keras.optimizers.Adam(.1))),
      ("of tf.train", lambda: sok.OptimizerWrapper(tf.compat.v1.train.AdamOptimizer(.1))),
      ("sgd", lambda: sok.SGD(.1)))
  def test_both_train(self, make):
    optimizer = make()
    first = _train([self.dynamic, self.static], optimizer, 1)
    self.assertEqual(4 * 5. + 3 * 5., first)
    self.assertLess(_train([self.dynamic, self.static], optimizer), .9 * first)
    self.assertEqual([3, 4], self.dynamic.size.numpy().tolist())

  def test_a_wrapper_counts_its_own_steps(self):
    optimizer = tf.keras.optimizers.Adam(.1)
    wrapper = sok.OptimizerWrapper(optimizer)
    _train([self.dynamic], wrapper, 3)
    self.assertEqual((3, 0), (int(wrapper.iterations), int(optimizer.iterations.numpy())))

  def test_the_value_of_a_table_of_fixed_size(self):
    self.static.assign(np.full([10, 3], 2., np.float32))
    self.assertEqual([[2.] * 3] * 10, self.static.value().numpy().tolist())
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "not a row of the table"):
      sok.lookup_sparse(self.static, tf.ragged.constant([[10]], dtype=tf.int64))

  def test_rows_are_assigned_and_exported(self):
    sok.assign(self.dynamic, tf.constant([5, 2 ** 40], tf.int64), np.eye(2, 4))
    keys, values = sok.export(self.dynamic)
    self.assertEqual([5, 2 ** 40], keys.numpy().tolist())
    self.assertEqual(np.eye(2, 4).tolist(), values.numpy().tolist())


class FilesTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ("of tf.train", lambda: tf.compat.v1.train.AdagradOptimizer(.1)),
      ("keras", lambda: tf.keras.optimizers.Adagrad(.1)),
      ("wrapped", lambda: sok.OptimizerWrapper(tf.keras.optimizers.Adagrad(.1))))
  def test_dump_and_load(self, optimizer_of):
    folder = self.create_tempdir().full_path
    make = lambda: [sok.DynamicVariable(dimension=4, initializer="ones", name="d"),
                    sok.Variable(np.ones([10, 3], np.float32), name="s")]
    variables, optimizer = make(), optimizer_of()
    _train(variables, optimizer)
    sok.dump(folder, variables, optimizer)
    expected = _train(variables, optimizer)
    others, again = make(), optimizer_of()
    sok.load(folder, others, again)
    self.assertEqual(expected, _train(others, again))

  @parameterized.parameters(
      (lambda v, folder: sok.Saver().dump_to_file(v, folder),
       lambda v, folder: sok.Saver().restore_from_file(v, folder)),
      (lambda v, folder: sok.dump(folder, v), lambda v, folder: sok.load(folder, v)))
  def test_two_tables_of_one_name(self, dump, load):
    folder = self.create_tempdir().full_path
    first, second = [sok.DynamicVariable(1, "ones", name="d") for _ in range(2)]
    sok.assign(first, [1], [[2.]])
    dump(first, folder)
    with self.assertRaisesRegex(Exception, "those of another variable 'd'"):
      dump(second, folder)
    load(first, folder)
    self.assertEqual([[2.]], sok.export(first)[1].numpy().tolist())
    dump(second, folder + "/other")
    load(second, folder)
    dump(second, folder)
    del first, second
    dump(sok.DynamicVariable(1, "ones", name="d"), folder)

  @parameterized.parameters(tf.int64, tf.int32)
  def test_saver(self, key_type):
    folder = self.create_tempdir().full_path
    table = sok.DynamicVariable(2, "ones", name="d", key_type=key_type)
    fixed = sok.Variable(np.ones([3, 2], np.float32), name="s")
    saver = sok.Saver()
    sok.assign(table, tf.constant([5, -3], key_type), [[1., 2.], [3., 4.]])
    for variable in (table, fixed):
      saver.dump_to_file(variable, folder)
    sok.assign(table, tf.constant([5, 9], key_type), np.zeros([2, 2]))
    fixed.assign(np.zeros([3, 2]))
    for variable in (table, fixed):
      saver.restore_from_file(variable, folder)
    keys, values = sok.export(table)
    self.assertEqual([-3, 5], keys.numpy().tolist())
    self.assertEqual([[3., 4.], [1., 2.]], values.numpy().tolist())
    self.assertEqual([[1., 1.]] * 3, fixed.value().numpy().tolist())
    saver.load_embedding_values(fixed, np.eye(3, 2))
    self.assertEqual(np.eye(3, 2).tolist(), fixed.value().numpy().tolist())
    with self.assertRaisesRegex(ValueError, "there is no .*d_keys.file for 'd'"):
      saver.restore_from_file(table, folder + "/empty")

  def test_saver_in_a_function(self):
    folder = self.create_tempdir().full_path
    table = sok.DynamicVariable(2, "ones", name="d")
    sok.assign(table, tf.constant([5], tf.int64), [[1., 2.]])

    @tf.function
    def step(restore):
      if restore:
        sok.Saver().restore_from_file(table, folder)
      else:
        sok.Saver().dump_to_file(table, folder)

    step(False)
    sok.assign(table, tf.constant([6], tf.int64), [[1., 2.]])
    step(True)
    self.assertEqual([5], sok.export(table)[0].numpy().tolist())

  def test_rows_that_changed(self):
    table = sok.DynamicVariable(dimension=4, initializer="ones")
    _train([table], sok.SGD(.1))
    now = datetime.datetime.now(datetime.timezone.utc)
    keys, values = sok.incremental_model_dump([table], now - datetime.timedelta(minutes=1))
    self.assertEqual([1, 2, 3], keys[0].tolist())
    self.assertEqual((3, 4), values[0].shape)
    keys, _ = sok.incremental_model_dump([table], now + datetime.timedelta(minutes=1))
    self.assertEqual([], keys[0].tolist())


class FunctionTest(absltest.TestCase):

  def test_a_step_in_a_function(self):
    table = sok.DynamicVariable(dimension=4, initializer=models.rows(0, 4))
    other = sok.DynamicVariable(dimension=4, initializer=models.rows(0, 4))
    of_table, of_other = (sok.OptimizerWrapper(tf.keras.optimizers.Adam(.1)) for _ in "ab")

    @tf.function
    def step():
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(sok.lookup_sparse(table, _ids(), combiners="sum") ** 2)
      of_table.apply_gradients([(tape.gradient(loss, table), table)])
      return loss

    losses = [float(step()) for _ in range(3)]
    self.assertEqual(losses, [_train([other], of_other, 1) for _ in range(3)])


if __name__ == "__main__":
  absltest.main()

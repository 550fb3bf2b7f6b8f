# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A small training script, as a user writes it, with the installed wheel."""

import os

from absl.testing import absltest
import numpy as np
import tensorflow as tf

from sparse_operation_kit import experiment as sok

_DIM = 3


def _ids():
  """Returns a SparseTensor of three samples: {7, -5}, {} and {7}."""
  return tf.SparseTensor(
      indices=tf.constant([[0, 0], [0, 1], [2, 0]], tf.int64),
      values=tf.constant([7, -5, 7], tf.int64),
      dense_shape=tf.constant([3, 2], tf.int64))


class TrainTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    tf.reset_default_graph()
    sok.init()

  def model(self, name="var_0"):
    """Returns (variable, pooled rows, train op) of a graph for one Adagrad step."""
    var = tf.get_embedding_variable(
        name, embedding_dim=_DIM, initializer=tf.ones_initializer(tf.float32))
    pooled = sok.lookup_sparse([var], [_ids()], combiners=["sum"])
    pooled = pooled[0] if isinstance(pooled, (list, tuple)) else pooled
    loss = tf.reduce_sum(tf.multiply(pooled, 2.0))
    opt = tf.train.AdagradOptimizer(0.1, initial_accumulator_value=0.5)
    return var, pooled, opt.apply_gradients(opt.compute_gradients(loss))

  def rows_in(self, sess, var):
    """Returns the number of keys of a variable: the first of its two sizes."""
    return sess.run(var.total_count())[0]

  def expected_row(self, gradient):
    """Returns a row of ones after one Adagrad step."""
    return np.full([_DIM], 1.0 - 0.1 * gradient / np.sqrt(0.5 + gradient**2), np.float32)

  def test_one_step(self):
    var, pooled, train = self.model()
    rows = tf.nn.embedding_lookup(var, tf.constant([7, -5, 99], tf.int64))
    with tf.Session() as sess:
      sess.run(tf.global_variables_initializer())
      before = sess.run(pooled)
      np.testing.assert_array_equal(before, [[2.0] * _DIM, [0.0] * _DIM, [1.0] * _DIM])
      self.assertEqual(self.rows_in(sess, var), 0)
      sess.run(train)
      # Two samples contain key 7, so its gradient is 4.
      np.testing.assert_allclose(
          sess.run(rows),
          [self.expected_row(4.0), self.expected_row(2.0), np.ones([_DIM])],
          rtol=1e-6)
      self.assertEqual(self.rows_in(sess, var), 2)

  def test_resumed_training_equals_uninterrupted_training(self):
    prefix = os.path.join(self.create_tempdir().full_path, "model")
    var, _, train = self.model()
    rows = tf.nn.embedding_lookup(var, tf.constant([7, -5], tf.int64))
    saver = tf.train.Saver()
    with tf.Session() as sess:
      sess.run(tf.global_variables_initializer())
      sess.run(train)
      saver.save(sess, prefix)
      sess.run(train)
      expected = sess.run(rows)
    names = [name for name, _ in tf.train.list_variables(prefix)]
    self.assertContainsSubset({"var_0-keys", "var_0-values"}, names)
    with tf.Session() as sess:
      saver.restore(sess, prefix)
      self.assertEqual(self.rows_in(sess, var), 2)
      sess.run(train)
      np.testing.assert_array_equal(sess.run(rows), expected)

  def test_stock_lookup_sparse(self):
    var = tf.get_embedding_variable(
        "stock", embedding_dim=_DIM, initializer=tf.ones_initializer(tf.float32))
    pooled = tf.nn.embedding_lookup_sparse(var, _ids(), None, combiner="mean")
    train = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(pooled))
    rows = tf.nn.embedding_lookup(var, tf.constant([7, -5], tf.int64))
    with tf.Session() as sess:
      sess.run(tf.global_variables_initializer())
      sess.run(train)
      np.testing.assert_allclose(
          sess.run(rows), [[-0.5] * _DIM, [0.5] * _DIM], rtol=1e-6)


if __name__ == "__main__":
  absltest.main()

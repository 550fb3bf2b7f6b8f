# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares second-order gradients of lookups with those on dense variables."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
import pairs

_ROWS, _DIM = 11, 3

_INDICES = [[0, 0], [0, 1], [0, 2], [2, 0], [2, 1], [3, 0]]


def _ids(values=(3, 5, 3, 1, 5, 8)):
  return tf.SparseTensor(_INDICES, tf.constant(values, tf.int64), [4, 3])


def _weights(values=None):
  if values is None:
    values = tf.constant([.5, 1.5, -.25, 2., .75, 1.25])
  return tf.SparseTensor(_INDICES, values, [4, 3])


def _dense_pool(variable, ids, weights, combiner):
  """Pools with stock ops that have gradients of any order."""
  samples = ids.indices[:, 0]
  rows = tf.gather(variable, ids.values)
  if combiner == "max":
    largest = tf.math.unsorted_segment_max(rows, samples, 4)
    counts = tf.math.unsorted_segment_sum(tf.ones_like(samples), samples, 4)
    return tf.where(counts > 0, largest, tf.zeros_like(largest))
  w = tf.ones_like(samples, tf.float32) if weights is None else weights.values
  total = tf.math.unsorted_segment_sum(rows * w[:, None], samples, 4)
  if combiner == "sum":
    return total
  w = tf.math.unsorted_segment_sum(w * w if combiner == "sqrtn" else w, samples, 4)
  has_ids = tf.constant([1., 0., 1., 1.])
  w = w * has_ids + (1. - has_ids)
  return total / (tf.sqrt(w) if combiner == "sqrtn" else w)[:, None]


def _rows_of(gradient):
  """Returns a variable's gradient as a dense tensor of all its rows."""
  return tf.math.unsorted_segment_sum(gradient.values, gradient.indices, _ROWS)


class SecondOrderTest(parameterized.TestCase):

  def _gradients(self, kind, look_up, order=2, with_weights=False):
    """Returns all variables' gradients of a loss with a penalty on gradients."""
    with tf.Graph().as_default():
      variable = pairs.make(kind, "v", pairs.rows(_ROWS, _DIM))
      dense = tf.get_variable("dense", initializer=pairs.rows(_DIM, 2, seed=1))
      w = tf.constant([.5, 1.5, -.25, 2., .75, 1.25])
      pooled = look_up(variable, _weights(w)) if with_weights else look_up(variable)
      loss = tf.reduce_sum(tf.tanh(tf.matmul(pooled, dense)) ** 2)
      first = tf.gradients(loss, [variable, dense])
      penalty = tf.reduce_sum(_rows_of(first[0]) ** 2) + tf.reduce_sum(first[1] ** 2)
      total = loss + penalty
      if order == 3:
        by_rows, = tf.gradients(penalty, [variable])
        total += tf.reduce_sum(_rows_of(by_rows) ** 2)
      gradients = tf.gradients(total, [variable, dense] + ([w] if with_weights else []))
      train = tf.train.GradientDescentOptimizer(.01).minimize(total)
      with pairs.session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run([_rows_of(gradients[0])] + gradients[1:])
        session.run(train)
        return found + session.run([pairs.read_all(variable, _ROWS), dense])

  def _check(self, look_up, oracle, **kwargs):
    table = self._gradients("table", look_up, **kwargs)
    dense = self._gradients("resource", oracle, **kwargs)
    for a, b in zip(table, dense):
      # Sums of large addends of either sign, so the error is relative to the largest.
      np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5 * np.abs(b).max())
      self.assertTrue(b.any())

  @parameterized.product(combiner=("sum", "mean", "sqrtn", "max"), order=(2, 3))
  def test_pooled(self, combiner, order):
    self._check(lambda v: ev.lookup_sparse([v], [_ids()], combiners=[combiner])[0],
                lambda v: _dense_pool(v, _ids(), None, combiner), order=order)

  @parameterized.product(combiner=("sum", "mean", "sqrtn"), order=(2, 3))
  def test_weights_have_gradients_too(self, combiner, order):
    self._check(lambda v, w: ev.lookup_sparse([v], [_ids()], [w], [combiner])[0],
                lambda v, w: _dense_pool(v, _ids(), w, combiner), order=order,
                with_weights=True)

  @parameterized.parameters("sum", "mean", "sqrtn")
  def test_equals_stock(self, combiner):
    # Only weighted stock lookups have second-order gradients with every combiner.
    ids = tf.SparseTensorValue(np.array(_INDICES[:3] + [[1, 0]] + _INDICES[3:]),
                               np.array([3, 5, 3, 7, 1, 5, 8]), [4, 3])

    def look_up(v):
      w = tf.SparseTensor(ids.indices, [.5, 1.5, -.25, 1., 2., .75, 1.25], [4, 3])
      return tf.nn.embedding_lookup_sparse(
          v, tf.SparseTensor.from_value(ids), w, combiner=combiner)

    self._check(look_up, look_up)

  def test_rows(self):
    for look_up in (
        lambda v: tf.nn.embedding_lookup(v, [3, 5, 3, 1]),
        lambda v: tf.gather(v, tf.constant([3, 5, 3, 1], tf.int64)),
        lambda v: tf.nn.embedding_lookup(v, [3, 5, 3, 1], max_norm=.7),
        lambda v: tf.nn.embedding_lookup_sparse(
            v, _ids(), None, combiner="sum", max_norm=.7)):
      self._check(look_up, look_up)

  def test_several_tables_parts_and_ragged_ids(self):
    ragged = tf.RaggedTensor.from_row_splits

    def look_up(v):
      is_table = ev.is_embedding_variable(v)
      values = pairs.rows(_ROWS, _DIM, seed=5)
      if is_table:
        other = pairs.table("other", values, partitioner=tf.fixed_size_partitioner(2))
        pooled = ev.lookup_sparse(
            [v, other, v], [_ids(), _ids(), ragged(_ids().values, [0, 3, 3, 5, 6])],
            combiners=["mean", "sqrtn", "max"])
        # Not all outputs of a call contribute to the loss.
        ev.lookup_sparse([other, v], [_ids()] * 2)
      else:
        other = pairs.dense("other", values)
        pooled = [_dense_pool(v, _ids(), None, "mean"),
                  _dense_pool(other, _ids(), None, "sqrtn"),
                  _dense_pool(v, _ids(), None, "max")]
      return pooled[0] * pooled[1] + pooled[2]

    self._check(look_up, look_up)

  def test_one_of_two_tables_in_the_penalty(self):
    # The other table has only the first-order gradient.
    results = []
    for kind in ("table", "resource"):
      with tf.Graph().as_default():
        a, b = [pairs.make(kind, name, pairs.rows(_ROWS, _DIM, seed=i))
                for i, name in enumerate("ab")]
        if kind == "table":
          pooled = ev.lookup_sparse([a, b], [_ids()] * 2)
        else:
          pooled = [_dense_pool(v, _ids(), None, "mean") for v in (a, b)]
        loss = tf.reduce_sum(tf.tanh(pooled[0] * pooled[1]))
        of_a, _ = tf.gradients(loss, [a, b])
        gradients = tf.gradients(tf.reduce_sum(_rows_of(of_a) ** 3), [a, b])
        with pairs.session() as session:
          session.run(tf.global_variables_initializer())
          results.append(session.run([_rows_of(g) for g in gradients]))
    for a, b in zip(*results):
      np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
      self.assertTrue(b.any())

  def test_weights_that_sum_to_zero(self):
    with tf.Graph().as_default():
      v = pairs.table("v", pairs.rows(_ROWS, _DIM))
      w = tf.constant([.5, -1., .5, 2., .75, 1.25])
      pooled, = ev.lookup_sparse([v], [_ids()], [_weights(w)], ["mean"], no_nan=True)
      first, = tf.gradients(tf.reduce_sum(tf.tanh(pooled)), [v])
      gradients = tf.gradients(tf.reduce_sum(first.values ** 2), [v, w])
      with pairs.session() as session:
        session.run(tf.global_variables_initializer())
        rows, of_weights = session.run([_rows_of(gradients[0]), gradients[1]])
    self.assertTrue(np.isfinite(rows).all())
    # key 3 occurs only in the first sample
    np.testing.assert_array_equal(rows[3], np.zeros(_DIM))
    self.assertTrue(rows[[1, 5, 8]].any())
    np.testing.assert_array_equal(of_weights[:3], np.zeros(3))

  def test_the_gradient_of_weights_has_none(self):
    with tf.Graph().as_default():
      v = pairs.table("v", pairs.rows(_ROWS, _DIM))
      w = tf.constant([.5, 1.5, -.25, 2., .75, 1.25])
      pooled, = ev.lookup_sparse([v], [_ids()], [_weights(w)], ["mean"])
      of_weights, = tf.gradients(tf.reduce_sum(pooled ** 2), [w])
      with self.assertRaisesRegex(NotImplementedError,
                                  "gradient of the weights.*tf.nn.embedding_lookup"):
        tf.gradients(tf.reduce_sum(of_weights ** 2), [v])


if __name__ == "__main__":
  absltest.main()

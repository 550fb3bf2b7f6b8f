# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of gradients of the less common lookups, with the tape in each place."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable
import eager_models as models
import sparse_operation_kit as sok

# Places of the tape: in eager execution, in a function, or around one.
_PLACES = ("eager", "function", "around a function")

_FILTER = embedding_variable.EmbeddingVariableOption(
    filter_option=embedding_variable.CounterFilter(filter_freq=2))


def _train(place, loss, tables, optimizer):
  """Trains one step; returns (loss, gradients)."""
  if place == "around a function":
    loss = tf.function(loss)

  def run():
    with tf.GradientTape() as tape:
      value = loss()
    gradients = tape.gradient(value, tables)
    optimizer.apply_gradients([(g, t) for g, t in zip(gradients, tables) if g is not None])
    return value, gradients

  return tf.function(run)() if place == "function" else run()


def _rows(table, keys):
  return tf.nn.embedding_lookup(table, tf.constant(keys, tf.int64)).numpy().tolist()


class InitialValueTest(parameterized.TestCase):

  @parameterized.parameters([(p, n) for p in _PLACES for n in (None, 3)])
  def test_absent_keys_start_with_it(self, place, parts):
    table = tf.compat.v1.get_embedding_variable(
        "t", 2, initializer=tf.ones_initializer(),
        partitioner=parts and tf.compat.v1.fixed_size_partitioner(parts))
    tables = [table] if parts is None else list(table)
    ids = tf.constant([5, 6, 5], tf.int64)
    initial = tf.constant([[2., 3.], [4., 5.], [2., 3.]])
    optimizer = tf.keras.optimizers.SGD(1.)

    def loss():
      rows = tf.compat.v1.nn.embedding_lookup(table, ids, ev_init_value=initial)
      return tf.reduce_sum(rows * [[1.], [10.], [1.]])

    for i, expected in enumerate([5. + 90. + 5., 1. - 110. + 1.]):
      self.assertEqual(i * 2, sum(int(t.total_count()[0]) for t in tables))
      self.assertEqual(expected, float(_train(place, loss, tables, optimizer)[0]))
    self.assertEqual([[-2., -1.], [-16., -15.], [1., 1.]], _rows(table, [5, 6, 7]))

  def test_without_a_gradient(self):
    table = tf.compat.v1.get_embedding_variable("t", 2, initializer=tf.ones_initializer())
    rows = tf.compat.v1.nn.embedding_lookup(table, tf.constant([5], tf.int64),
                                            ev_init_value=tf.constant([[2., 3.]]))
    self.assertEqual([[2., 3.]], rows.numpy().tolist())
    self.assertEqual(0, int(table.total_count()[0]))


class ReadAndEvictTest(parameterized.TestCase):

  @parameterized.parameters(*_PLACES)
  def test_its_gradient(self, place):
    table = sok.DynamicVariable(dimension=2, initializer="ones", var_type="hybrid")
    keys = tf.constant([5, 6, 5], tf.int64)

    def loss():
      rows, _, _ = sok.sparse_read_and_evict(table, keys)
      return tf.reduce_sum(rows ** 2 * [[1.], [2.], [3.]])

    value, (gradient,) = _train(place, loss, [table], sok.SGD(lr=.5))
    self.assertEqual(12., float(value))
    self.assertEqual([5, 6, 5], gradient.indices.numpy().tolist())
    self.assertEqual([2., 4., 6.], gradient.values.numpy()[:, 0].tolist())
    self.assertEqual([[-3., -3.], [-1., -1.]], _rows(table, [5, 6]))


class OccurrencesTest(parameterized.TestCase):

  @parameterized.parameters([(p, k) for p in _PLACES for k in ("pooled", "rows", "counts")])
  def test_a_filter_counts_all(self, place, kind):
    table, other = [tf.compat.v1.get_embedding_variable(
        name, 2, initializer=tf.zeros_initializer(), ev_option=option)
                    for name, option in (("t", _FILTER), ("other", None))]
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [1, 1]],
                          tf.constant([5, 5, 5, 6], tf.int64), [2, 2])

    def loss():
      if kind == "pooled":
        outputs = sok.lookup_sparse([other, table], [ids, ids], combiners=["sum", "sum"])
        return tf.reduce_sum(outputs[0]) + tf.reduce_sum(outputs[1] * [[1.], [2.]])
      if kind == "rows":
        rows = tf.nn.embedding_lookup(table, ids.values)
        return tf.reduce_sum(rows * [[1.], [1.], [2.], [2.]])
      rows = tf.compat.v1.nn.embedding_lookup(
          table, tf.constant([5, 6], tf.int64), counts=[3, 1])
      return tf.reduce_sum(rows * [[4.], [2.]])

    _train(place, loss, [table], tf.keras.optimizers.SGD(1.))
    self.assertEqual([3, 1], table.get_frequency(tf.constant([5, 6], tf.int64)).numpy().tolist())
    self.assertEqual([[-4., -4.], [0., 0.]], _rows(table, [5, 6]))

  def test_an_empty_batch(self):
    table = tf.compat.v1.get_embedding_variable("t", 2, ev_option=_FILTER)
    ids = tf.ragged.constant([[], []], dtype=tf.int64)

    def loss():
      return tf.reduce_sum(sok.lookup_sparse(table, ids, combiners="sum"))

    _, (gradient,) = _train("around a function", loss, [table], tf.keras.optimizers.SGD(1.))
    self.assertEqual((0, 2), gradient.values.numpy().shape)


class DenseValueTest(parameterized.TestCase):

  @parameterized.parameters(*models.MODES)
  def test_zeros_for_a_table_that_is_not_used(self, mode):
    used, unused = [tf.compat.v1.get_embedding_variable(
        name, 2, initializer=tf.ones_initializer()) for name in ("used", "unused")]
    dense = tf.Variable([1., 2.])

    def gradients(*sources):
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.embedding_lookup(used, tf.constant([1], tf.int64)))
      return tape.gradient(loss, sources,
                           unconnected_gradients=tf.UnconnectedGradients.ZERO)

    run = tf.function(gradients) if mode == "function" else gradients
    with self.assertRaisesRegex(NotImplementedError, "'unused'.*no dense value.*NONE"):
      run(used, unused)
    of_used, of_dense = run(used, dense)
    self.assertEqual([[1., 1.]], of_used.values.numpy().tolist())
    self.assertEqual([0., 0.], of_dense.numpy().tolist())

  @parameterized.named_parameters(
      ("sum", tf.reduce_sum), ("loss", tf.nn.l2_loss), ("norm", tf.norm),
      ("product", lambda x: tf.matmul([[1.]], x)), ("plus", lambda x: x + 1.),
      ("identity", tf.identity), ("square", tf.square), ("zeros", tf.zeros_like),
      ("ones", tf.ones_like), ("zeros of v1", tf.compat.v1.zeros_like))
  def test_ops_on_a_whole_table(self, use):
    table = tf.compat.v1.get_embedding_variable("t", 2)
    for run in (use, tf.function(use)):
      with self.assertRaisesRegex(NotImplementedError, "'t'.*no dense value"):
        run(table)
    self.assertEqual((1, 2), tf.nn.embedding_lookup(table, tf.constant([1], tf.int64)).shape)


class RaggedTest(parameterized.TestCase):

  @parameterized.parameters([(safe, weighted, norm) for safe in (False, True)
                             for weighted in (False, True) for norm in (None, .5)])
  def test_the_stock_lookup_of_ragged_ids(self, safe, weighted, norm):
    table = tf.compat.v1.get_embedding_variable("t", 2, initializer=models.rows(0, 2))
    dense = tf.Variable(tf.nn.embedding_lookup(table, tf.range(8, dtype=tf.int64)))
    ids = tf.ragged.constant([[1, 2], [3, 3, 7]], dtype=tf.int64)
    weights = tf.ragged.constant([[1., 2.], [3., 1., .5]])
    look_up = tf.nn.safe_embedding_lookup_sparse if safe else tf.nn.embedding_lookup_sparse
    expected = look_up(dense, ids.to_sparse(), weights.to_sparse() if weighted else None,
                       combiner="mean", max_norm=norm)
    found = look_up(table, ids, weights if weighted else None, combiner="mean",
                    max_norm=norm)
    np.testing.assert_allclose(expected.numpy(), found.numpy(), rtol=1e-6)

  def test_ids_of_another_kind(self):
    table = tf.compat.v1.get_embedding_variable("t", 2)
    with self.assertRaisesRegex(TypeError, "'t'.*SparseTensor or a RaggedTensor"):
      tf.nn.embedding_lookup_sparse(table, tf.constant([[1]], tf.int64), None)


if __name__ == "__main__":
  absltest.main()

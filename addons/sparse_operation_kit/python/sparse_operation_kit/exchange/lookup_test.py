# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable import _lib
import sparse_operation_kit as sok

_IDS = [[5, -3, 5], [], [7]]


def _sparse(rows=None, dtype=tf.int64):
  rows = _IDS if rows is None else rows
  indices = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
  values = [x for row in rows for x in row]
  return tf.SparseTensor(
      tf.constant(indices, tf.int64, [len(indices), 2]),
      tf.constant(values, dtype, [len(values)]), [len(rows), 3])


def _ragged():
  return tf.ragged.constant(_IDS, dtype=tf.int64)


class LookupSparseTest(parameterized.TestCase):

  def setUp(self):
    super(LookupSparseTest, self).setUp()
    graph = tf.Graph().as_default()
    graph.__enter__()
    self.addCleanup(graph.__exit__, None, None, None)

  def _variable(self, name="table", dim=2, value=1.0, **kwargs):
    return tf.get_embedding_variable(
        name, embedding_dim=dim, initializer=tf.constant_initializer(value),
        **kwargs)

  def _run(self, fetches):
    with tf.compat.v1.Session() as session:
      session.run(tf.compat.v1.global_variables_initializer())
      return session.run(fetches)

  def test_list_in_list_out(self):
    a, b = self._variable("a", 3, 1.0), self._variable("b", 5, 2.0)
    out = sok.lookup_sparse([a, b], [_sparse(), _ragged()], combiners=["sum", "mean"])
    self.assertIsInstance(out, list)
    first, second = self._run(out)
    np.testing.assert_array_equal(first, np.outer([3, 0, 1], [1] * 3))
    np.testing.assert_array_equal(second, np.outer([2, 0, 2], [1] * 5))

  def test_one_in_one_out(self):
    out = sok.lookup_sparse(self._variable(), _sparse(), combiners="sum")
    self.assertEqual(out.shape.as_list(), [3, 2])
    np.testing.assert_array_equal(self._run(out)[:, 0], [3, 0, 1])

  def test_default_is_mean(self):
    out = sok.lookup_sparse(self._variable(), _sparse())
    np.testing.assert_array_equal(self._run(out)[:, 0], [1, 0, 1])

  def test_weights(self):
    weights = tf.SparseTensor(
        _sparse().indices, tf.constant([1.0, 2.0, 3.0, 4.0]), [3, 3])
    variable = self._variable(value=2.0)
    total, mean = self._run(
        sok.lookup_sparse([variable] * 2, [_sparse()] * 2, [weights] * 2,
                          ["sum", "mean"]))
    np.testing.assert_array_equal(total[:, 0], [12, 0, 8])
    np.testing.assert_array_equal(mean[:, 0], [2, 0, 2])

  @parameterized.parameters((1, False), (1, True), (2, False))
  def test_weights_that_sum_to_zero_give_zeros_and_train_nothing(self, parts, filtered):
    if filtered:
      variable = sok.DynamicVariable(2, "1", filter_ratio=1.)
    else:
      variable = self._variable(partitioner=None if parts == 1 else
                                tf.compat.v1.fixed_size_partitioner(parts))
    w = tf.constant([1., .25, -1.25, 4.])
    weights = tf.SparseTensor(_sparse().indices, w, [3, 3])
    out = sok.lookup_sparse(variable, _sparse(), weights, "mean",
                            use_low_frequency_filter=filtered)
    loss = tf.reduce_sum(tf.square(out + 1.))
    gradient, = tf.gradients(loss, [w])
    train = tf.compat.v1.train.GradientDescentOptimizer(.25).minimize(loss)
    rows = tf.nn.embedding_lookup(variable, tf.constant([5, -3, 7], tf.int64))
    with tf.compat.v1.Session() as session:
      session.run(tf.compat.v1.global_variables_initializer())
      found, gradient, _ = session.run([out, gradient, train])
      after = session.run(rows)
    np.testing.assert_array_equal(found, [[0, 0], [0, 0], [1, 1]])
    np.testing.assert_array_equal(gradient, np.zeros(4))
    np.testing.assert_array_equal(after, [[1, 1], [1, 1], [0, 0]])

  def test_one_op_for_all_tables_and_one_for_their_gradients(self):
    variables = [self._variable("v%d" % i, dim=i + 1) for i in range(5)]
    out = sok.lookup_sparse(variables, [_sparse()] * 5, combiners=["sum"] * 5)
    loss = tf.add_n([tf.reduce_sum(o) for o in out])
    tf.compat.v1.train.AdagradOptimizer(0.1).minimize(loss)
    types = [op.type for op in tf.compat.v1.get_default_graph().get_operations()]
    self.assertEqual(types.count("EvLookupSparse"), 1)
    self.assertEqual(types.count("EvLookupSparseGrad"), 1)

  def test_empty_batch(self):
    ids = tf.SparseTensor(np.zeros([0, 2], np.int64), np.zeros([0], np.int64), [0, 0])
    out = self._run(sok.lookup_sparse([self._variable()], [ids]))
    self.assertEqual(out[0].shape, (0, 2))

  def test_int32_ids(self):
    out = sok.lookup_sparse(self._variable(), _sparse(dtype=tf.int32), None, "sum")
    np.testing.assert_array_equal(self._run(out)[:, 0], [3, 0, 1])

  def test_partitioned_variable(self):
    variable = self._variable(partitioner=tf.compat.v1.fixed_size_partitioner(3))
    out = sok.lookup_sparse(variable, _sparse(), combiners="sum")
    np.testing.assert_array_equal(self._run(out)[:, 0], [3, 0, 1])

  def test_older_positional_forms(self):
    variable = self._variable()
    outs = [
        sok.lookup_sparse([variable], [_sparse()], [3], ["sum"]),
        sok.lookup_sparse([variable], [_sparse()], ["sum"]),
        sok.lookup_sparse([variable], indices=[_sparse()], combiners=["sum"]),
        sok.lookup_sparse([variable], [_sparse()], hotness=[3], combiners=["sum"]),
    ]
    for out in self._run(outs):
      np.testing.assert_array_equal(out[0][:, 0], [3, 0, 1])

  @parameterized.parameters(-1, 0)
  def test_targets_of_one_process(self, target):
    variable = self._variable()
    variable.target_gpu = target
    self._run(sok.lookup_sparse(variable, _sparse()))

  @parameterized.parameters(1, -2, "0", None, True)
  def test_other_targets(self, target):
    variable = self._variable("user")
    variable.target_gpu = target
    with self.assertRaisesRegex(ValueError, "target_gpu of variable 'user.*expected"):
      sok.lookup_sparse(variable, _sparse())

  def test_dense_variable_is_refused(self):
    dense = tf.compat.v1.get_variable("dense", [10, 2])
    with self.assertRaisesRegex(TypeError, "expected embedding variables.*'dense"):
      sok.lookup_sparse([dense], [_sparse()])

  def test_a_sum_over_ranks_by_nccl_has_no_gradient(self):
    x = tf.constant([1.])
    total, = _lib.load().sok_all_reduce([x], names=["dense"], exchange_name="sum")
    with self.assertRaisesRegex(NotImplementedError, "of 'dense' has no gradient"):
      tf.gradients(total ** 2, [x])

  def test_low_frequency_filter_is_refused(self):
    with self.assertRaisesRegex(TypeError, "use_low_frequency_filter needs"):
      sok.lookup_sparse(self._variable(), _sparse(), use_low_frequency_filter=True)

  def test_float_ids_name_the_variable(self):
    with self.assertRaisesRegex((TypeError, ValueError), "user"):
      sok.lookup_sparse(self._variable("user"), _sparse(dtype=tf.float32))


class FilterVariablesTest(absltest.TestCase):

  def test_splits_in_order(self):
    with tf.Graph().as_default():
      dense_a = tf.compat.v1.get_variable("dense_a", [2])
      ev_a = tf.get_embedding_variable("ev_a", embedding_dim=2)
      parts = tf.get_embedding_variable(
          "parts", embedding_dim=2,
          partitioner=tf.compat.v1.fixed_size_partitioner(2))
      dense_b = tf.compat.v1.get_variable("dense_b", [2])
      dense_parts = tf.compat.v1.get_variable(
          "dense_parts", [4], partitioner=tf.compat.v1.fixed_size_partitioner(2))
      sparse, dense = sok.filter_variables(
          [dense_a, ev_a, parts, dense_b, dense_parts])
      self.assertEqual([id(v) for v in sparse], [id(ev_a), id(parts)])
      self.assertEqual([id(v) for v in dense],
                       [id(dense_a), id(dense_b), id(dense_parts)])
      sparse, dense = sok.filter_variables(tf.compat.v1.trainable_variables())
      self.assertLen(sparse, 3)
      self.assertLen(dense, 4)

  def test_empty(self):
    self.assertEqual(sok.filter_variables([]), ([], []))


if __name__ == "__main__":
  absltest.main()

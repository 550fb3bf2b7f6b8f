# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests every combiner in each way that a lookup may pool."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
from embedding_variable.lookup import combiners
from embedding_variable import tf_names

_DIM = 3
# Sample 1 has no ids; sample 2 has the same id twice.
_SAMPLES = [0, 0, 0, 2, 2, 3]
_IDS = [1, -5, 2**40, 7, 7, 2]
_WEIGHTS = [.5, 2., 1., .25, 4., 3.]


class CombinersTest(parameterized.TestCase):

  def setUp(self):
    super(CombinersTest, self).setUp()
    ev.install()
    tf.compat.v1.reset_default_graph()

  def _pool(self, combiner, weighted, partitioner=None, max_norm=None):
    """Returns the pooled rows `[5, dim]` of a new table."""
    with tf.Graph().as_default():
      table = tf.get_embedding_variable(
          "v", _DIM, initializer=tf.random_normal_initializer(seed=3),
          partitioner=partitioner)
      indices = [[s, i] for i, s in enumerate(_SAMPLES)]
      shape = [5, len(_IDS)]
      ids = tf.SparseTensor(indices, tf.constant(_IDS, tf.int64), shape)
      weights = tf.SparseTensor(indices, tf.constant(_WEIGHTS), shape)
      output = tf.nn.embedding_lookup_sparse(
          table, ids, weights if weighted else None, combiner=combiner,
          max_norm=max_norm)
      with tf.compat.v1.Session() as session:
        session.run(tf.compat.v1.global_variables_initializer())
        return session.run(output)

  def test_the_op_has_the_same_ones(self):
    for attr in tf_names.op_def("EvLookupSparse").attr:
      if attr.name == "combiners":
        allowed = [name.decode() for name in attr.allowed_values.list.s]
    self.assertCountEqual(allowed, combiners.NAMES)

  # Not every combiner takes weights.
  @parameterized.parameters(*(
      [(name, False) for name in combiners.NAMES] +
      [(name, True) for name in ("sum", "mean", "sqrtn")]))
  def test_parts_and_stock_ops_pool_as_the_op_does(self, combiner, weighted):
    if weighted and combiners.get(combiner).selects:
      with self.assertRaisesRegex(ValueError, "'v': combiner '.*' takes no weights"):
        self._pool(combiner, weighted)
      return
    fused = self._pool(combiner, weighted)
    self.assertTrue(fused[0].any())
    np.testing.assert_array_equal(fused[[1, 4]], 0)
    # The limit exceeds all rows: nothing is clipped, but stock ops pool.
    np.testing.assert_allclose(
        self._pool(combiner, weighted, max_norm=1e6), fused, rtol=1e-5)
    np.testing.assert_allclose(
        self._pool(combiner, weighted, tf.fixed_size_partitioner(3)), fused, rtol=1e-5)

  @parameterized.parameters("max_of", None, 3, (["sum"],))
  def test_refuses_others(self, name):
    with self.assertRaisesRegex(ValueError, "^lookup of 'v': combiner: expected one of .*'"):
      combiners.check(name, "lookup of 'v'")

  def test_words(self):
    self.assertEqual(combiners.in_words(["a", "b", "c"]), "'a', 'b' or 'c'")
    self.assertEqual(combiners.in_words(["a", "b"]), "'a' or 'b'")


if __name__ == "__main__":
  absltest.main()

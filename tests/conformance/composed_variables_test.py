# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.get_multihash_variable` and `tf.get_dynamic_dimension_embedding_variable`."""

import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
import pairs


def _sparse():
  """Returns ids of three samples, {1, 5}, {} and {11}, and weights."""
  indices = [[0, 0], [0, 1], [2, 0]]
  return (tf.SparseTensor(indices, tf.constant([1, 5, 11], tf.int64), [3, 2]),
          tf.SparseTensor(indices, [1., 3., 2.], [3, 2]))


class MultiHashTest(parameterized.TestCase):

  def setUp(self):
    super(MultiHashTest, self).setUp()
    tf.reset_default_graph()

  def run_op(self, *fetches):
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      return session.run(fetches)

  @parameterized.parameters(
      ("add", lambda q, r: q + r), ("mul", lambda q, r: q * r),
      ("mult", lambda q, r: q * r),
      ("concat", lambda q, r: np.concatenate([q, r], -1)))
  def test_rows_are_combined(self, operation, together):
    variable = tf.get_multihash_variable("m", [[3, 2], [4, 2]], operation=operation)
    ids = np.arange(9).reshape(3, 3)
    rows = tf.nn.embedding_lookup(variable, tf.constant(ids, tf.int64))
    self.assertEqual(rows.shape.as_list(), [3, 3, variable.dim])
    got, q, r = self.run_op(rows, variable.quotients, variable.remainders)
    self.assertEqual((q.shape, r.shape), ((3, 2), (4, 2)))
    np.testing.assert_array_equal(got, together(q[ids // 3], r[ids % 4]))

  def test_ids_have_distinct_rows_if_r_is_as_large_as_q(self):
    for q_rows, r_rows in ((3, 4), (4, 4), (5, 4)):
      tf.reset_default_graph()
      variable = tf.get_multihash_variable(
          "m", [[q_rows, 2], [r_rows, 2]], operation="concat",
          initializer=tf.random_uniform_initializer())
      got, = self.run_op(tf.nn.embedding_lookup(variable, tf.range(q_rows * q_rows)))
      # DeepRec's rule gives ids 0 and 4 the same two rows if Q has 5 rows and R has 4.
      self.assertLen(np.unique(got, axis=0), q_rows * min(q_rows, r_rows))

  def test_variables_are_dense_under_deeprecs_names(self):
    with tf.variable_scope("scope"):
      variable = tf.get_multihash_variable("m", [[3, 2], [4, 2]])
    self.assertEqual(variable.name, "scope/m")
    self.assertEqual([v.op.name for v in tf.trainable_variables()],
                     ["scope/m/multhash_Q", "scope/m/multhash_R"])
    with tf.variable_scope("scope", reuse=True):
      again = tf.get_multihash_variable("m", [[3, 2], [4, 2]])
    self.assertIs(again.quotients, variable.quotients)

  @parameterized.parameters("sum", "mean", "sqrtn")
  def test_pooled(self, combiner):
    variable = tf.get_multihash_variable("m", [[4, 2], [4, 2]])
    ids, weights = _sparse()
    pooled = tf.nn.embedding_lookup_sparse(variable, ids, weights, combiner=combiner)
    rows = tf.nn.embedding_lookup(variable, ids.values)
    got, rows = self.run_op(pooled, rows)
    first = rows[0] + 3 * rows[1]
    divisors = {"sum": (1, 1), "mean": (4, 2), "sqrtn": (np.sqrt(10), 2)}[combiner]
    np.testing.assert_allclose(
        got, [first / divisors[0], [0, 0], 2 * rows[2] / divisors[1]], rtol=1e-5)

  @parameterized.parameters("sum", "mean", "sqrtn")
  def test_safe_lookup_equals_that_of_dense_rows(self, combiner):
    variable = tf.get_multihash_variable("m", [[4, 2], [4, 2]])
    # Three samples of two entries each: [{1}, {5, -7}], [{}, {}], [{11, 3}, {2}]; id 3
    # has weight 0.
    indices = [[0, 0, 0], [0, 1, 0], [0, 1, 1], [2, 0, 0], [2, 0, 1], [2, 1, 0]]
    ids = tf.SparseTensor(indices, tf.constant([1, 5, -7, 11, 3, 2], tf.int64), [3, 2, 2])
    weights = tf.SparseTensor(indices, [1., 3., 1., 2., 0., 1.], [3, 2, 2])
    rows = tf.nn.embedding_lookup(variable, tf.range(16))

    def both(weights, default_id=None):
      # The stock function on a dense table of the 16 rows.
      return [tf.nn.safe_embedding_lookup_sparse(v, ids, weights, combiner, default_id)
              for v in (variable, rows)]

    for got, want in (both(None), both(weights), both(None, default_id=6)):
      self.assertEqual(got.shape.as_list(), [3, 2, 2])
      np.testing.assert_allclose(*self.run_op(got, want), rtol=1e-5)

  def test_trains(self):
    variable = tf.get_multihash_variable("m", [[3, 2], [4, 2]],
                                         initializer=tf.zeros_initializer())
    rows = tf.nn.embedding_lookup(variable, tf.constant([5, 6], tf.int64))
    train = tf.train.GradientDescentOptimizer(1.).minimize(-tf.reduce_sum(rows))
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      session.run(train)
      q, r = session.run([variable.quotients, variable.remainders])
    np.testing.assert_array_equal(q[:, 0], [0, 1, 1])  # 5 is 1 * 3 + 2, 6 is 2 * 3
    # modulo 4, the number of R's rows
    np.testing.assert_array_equal(r[:, 0], [0, 1, 1, 0])

  @parameterized.parameters(
      (dict(dims=[[3, 2]]), "dims: expected 2 shapes"),
      (dict(num_of_partitions=3), "dims: expected 2 shapes"),
      (dict(dims=[[3, 2], [4]]), r"expected \[rows, dim\]"),
      (dict(dims=[[3, 2], [4, 3]]), "one length, got 2 and 3"),
      (dict(complementary_strategy="x"), "expected 'Q-R'"),
      (dict(operation="div"), "operation: expected one of"))
  def test_refuses(self, changes, message):
    arguments = dict(dims=[[3, 2], [4, 2]])
    arguments.update(changes)
    with self.assertRaisesRegex(ValueError, "'m': .*" + message):
      tf.get_multihash_variable("m", **arguments)

  def test_lookup_refuses(self):
    variable = tf.get_multihash_variable("m", [[3, 2], [4, 2]])
    with self.assertRaisesRegex(ValueError, "'m': blocknums"):
      tf.nn.embedding_lookup(variable, [1], blocknums=[1])
    with self.assertRaisesRegex(TypeError, "'m': ids: expected integers"):
      tf.nn.embedding_lookup(variable, [1.5])
    rows = tf.nn.embedding_lookup(variable, tf.constant([9], tf.int64))
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, r"not in \[0, 3\)"):
      self.run_op(rows)


class DynamicDimensionTest(parameterized.TestCase):

  def setUp(self):
    super(DynamicDimensionTest, self).setUp()
    tf.reset_default_graph()

  def variable(self, parts=None, **kwargs):
    return tf.get_dynamic_dimension_embedding_variable(
        "d", embedding_block_dimension=2, embedding_block_num=3,
        initializer=tf.ones_initializer(),
        partitioner=tf.fixed_size_partitioner(parts) if parts else None, **kwargs)

  def test_safe_lookup_is_refused(self):
    with self.assertRaisesRegex(ValueError, "'d': .*needs blocknums"):
      tf.nn.safe_embedding_lookup_sparse(self.variable(), _sparse()[0])

  @parameterized.parameters(None, 3)
  def test_blocknums_choose_the_blocks(self, parts):
    variable = self.variable(parts)
    ids = tf.constant([[1, -2], [3, 2**62]], tf.int64)
    rows = tf.nn.embedding_lookup(variable, ids, blocknums=[[1, 2], [0, 3]])
    self.assertEqual(rows.shape.as_list(), [2, 2, 6])
    train = tf.train.AdagradOptimizer(1., 1e-12).minimize(tf.reduce_sum(rows))
    counts = []
    for block in variable.blocks:
      tables = [block] if ev.is_embedding_variable(block) else list(block)
      counts.append(tf.add_n([t.total_count()[0] for t in tables]))
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      want = np.array([[[1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0]],
                       [[0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]]], np.float32)
      np.testing.assert_array_equal(session.run(rows), want)
      session.run(train)
      # A key has rows only in the blocks in which it was looked up.
      self.assertEqual(session.run(counts), [3, 2, 1])
      np.testing.assert_allclose(session.run(rows), np.zeros([2, 2, 6]), atol=1e-6)

  def test_one_op_for_all_blocks(self):
    rows = tf.nn.embedding_lookup(self.variable(), tf.constant([1, 2]), blocknums=[1, 2])
    tf.train.AdamOptimizer().minimize(tf.reduce_sum(rows))
    types = [op.type for op in tf.get_default_graph().get_operations()]
    self.assertEqual((types.count("EvLookupSparse"), types.count("EvApply")), (1, 1))

  @parameterized.parameters("sum", "mean", "sqrtn")
  def test_pooled(self, combiner):
    ids, weights = _sparse()
    got = tf.nn.embedding_lookup_sparse(self.variable(), ids, weights, combiner=combiner,
                                        blocknums=tf.constant([1, 2, 3]))
    self.assertEqual(got.shape.as_list(), [3, 6])
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      got = session.run(got)
    first, last = {"sum": (1, 1), "mean": (4, 2), "sqrtn": (np.sqrt(10), 2)}[combiner]
    np.testing.assert_allclose(
        got, [np.array([4, 4, 3, 3, 0, 0]) / first, np.zeros(6), np.full(6, 2.) / last],
        rtol=1e-6)

  def test_saves_block_by_block(self):
    variable = self.variable()
    self.assertEqual((variable.name, variable.dim, variable.block_num), ("d", 6, 3))
    rows = tf.nn.embedding_lookup(variable, tf.constant([7, 8]), blocknums=[3, 1])
    train = tf.train.AdagradOptimizer(.1).minimize(tf.reduce_sum(rows**2))
    prefix = os.path.join(self.create_tempdir().full_path, "c")
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      session.run(train)
      tf.train.Saver().save(session, prefix)
      expected = session.run(rows)
    with pairs.session() as session:
      tf.train.Saver().restore(session, prefix)
      np.testing.assert_array_equal(session.run(rows), expected)
    self.assertEqual([tf.train.load_variable(prefix, "d/block%d-keys" % i).tolist()
                      for i in range(3)], [[7, 8], [7], [7]])

  def test_no_ids(self):
    rows = tf.nn.embedding_lookup(self.variable(), tf.zeros([0], tf.int64),
                                  blocknums=tf.zeros([0], tf.int32))
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      self.assertEqual(session.run(rows).shape, (0, 6))

  def test_a_number_of_blocks_of_numpy(self):
    variable = tf.get_dynamic_dimension_embedding_variable("n", 2, np.int64(3))
    self.assertEqual(variable.block_num, 3)

  def test_refuses(self):
    variable = self.variable()
    with self.assertRaisesRegex(ValueError, "'d': .* needs blocknums"):
      tf.nn.embedding_lookup(variable, [1])
    for blocknums in ([1, 2], [1.5]):
      with self.assertRaisesRegex(ValueError, "'d': blocknums: expected integers"):
        tf.nn.embedding_lookup(variable, [1], blocknums=blocknums)
    with self.assertRaisesRegex(ValueError, "'d': max_norm"):
      tf.nn.embedding_lookup(variable, [1], blocknums=[1], max_norm=1.)
    with self.assertRaisesRegex(TypeError, "ids: expected int32 or int64"):
      tf.nn.embedding_lookup(variable, [1.5], blocknums=[1])
    with self.assertRaisesRegex(ValueError, "'e': embedding_block_num: .* got 0"):
      tf.get_dynamic_dimension_embedding_variable("e", 2, 0)


if __name__ == "__main__":
  absltest.main()

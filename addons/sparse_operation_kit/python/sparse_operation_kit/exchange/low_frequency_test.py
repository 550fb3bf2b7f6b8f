# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of lookup_sparse(..., use_low_frequency_filter=True) in one process."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from sparse_operation_kit import experiment as sok


class LowFrequencyTest(parameterized.TestCase):

  def setUp(self):
    super(LowFrequencyTest, self).setUp()
    graph = tf.Graph().as_default()
    graph.__enter__()
    self.addCleanup(graph.__exit__, None, None, None)
    tf.compat.v1.set_random_seed(3)
    self._ids = tf.compat.v1.placeholder(tf.int64, [None])

  def _lookup(self, v, **kwargs):
    """A lookup in which each id is its own sample."""
    splits = tf.range(tf.size(self._ids, out_type=tf.int64) + 1)
    return sok.lookup_sparse(
        v, tf.RaggedTensor.from_row_splits(self._ids, splits), combiners="sum",
        use_low_frequency_filter=True, **kwargs)

  def _session(self):
    session = tf.compat.v1.Session()
    self.addCleanup(session.close)
    session.run(tf.compat.v1.global_variables_initializer())
    return session

  @parameterized.parameters(0., .25, 1.)
  def test_admits_a_fraction_of_new_keys(self, ratio):
    v = sok.DynamicVariable(3, "2", filter_ratio=ratio)
    rows = self._session().run(self._lookup(v), {self._ids: np.arange(4000)})
    self.assertEqual(rows.shape, (4000, 3))
    self.assertTrue(np.all((rows == 2) | (rows == 0)))
    np.testing.assert_array_equal(rows.min(1), rows.max(1))
    self.assertAlmostEqual(rows.mean() / 2, ratio, delta=.03)

  def test_not_on_parameter_servers(self):
    with tf.device(tf.compat.v1.train.replica_device_setter(ps_tasks=2)):
      v = sok.DynamicVariable(1, "2", filter_ratio=.5)
      with self.assertRaisesRegex(ValueError, "%s.*/job:ps/task:0" % v.op.name):
        self._lookup(v)

  def test_refused_keys_are_not_trained_and_admitted_ones_stay(self):
    v = sok.DynamicVariable(1, "2", filter_ratio=.5)
    output = self._lookup(v)
    train = sok.SGD(1.).minimize(tf.reduce_sum(output))
    session = self._session()
    keys = np.repeat(np.arange(100), 2)
    rows, _ = session.run([output, train], {self._ids: keys})
    # Both occurrences of a key get the same result.
    np.testing.assert_array_equal(rows[::2], rows[1::2])
    admitted = keys[::2][rows[::2, 0] == 2]
    self.assertBetween(len(admitted), 20, 80)
    found, values = session.run(sok.export(v))
    np.testing.assert_array_equal(found, admitted)
    np.testing.assert_array_equal(values, np.zeros([len(admitted), 1]))
    # Existing rows are always admitted; the other keys are drawn again.
    session.run(sok.assign(v, admitted, np.full([len(admitted), 1], 7.)))
    seen = []
    for _ in range(2):
      rows = session.run(output, {self._ids: np.arange(100)})[:, 0]
      np.testing.assert_array_equal(rows[admitted], np.full(len(admitted), 7.))
      seen.append(rows)
    self.assertFalse(np.array_equal(*seen))

  def test_mean_counts_refused_ids(self):
    v = sok.DynamicVariable(1, "2", filter_ratio=0.)
    w = sok.DynamicVariable(1, "2", filter_ratio=1.)
    ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([1, 2, 2], tf.int64),
                          [3, 2])
    weights = tf.SparseTensor(ids.indices, tf.constant([1., 3., 5.]), [3, 2])
    outputs = sok.lookup_sparse([v, v, w], [ids] * 3, [weights, None, weights],
                                ["mean", "mean", "mean"], use_low_frequency_filter=True)
    session = self._session()
    session.run(sok.assign(v, [2], [[8.]]))
    weighted, plain, all_ = session.run(outputs)
    self.assertEqual(outputs[0].shape.as_list(), [3, 1])
    np.testing.assert_allclose(weighted, [[6.], [0.], [8.]])
    np.testing.assert_allclose(plain, [[4.], [0.], [8.]])
    np.testing.assert_allclose(all_, [[2.], [0.], [2.]])

  def test_same_seed_same_draws(self):
    results = []
    for _ in range(2):
      with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.set_random_seed(9)
        v = sok.DynamicVariable(1, "1", filter_ratio=.5)
        self._ids = tf.compat.v1.placeholder(tf.int64, [None])
        output = self._lookup(v)
        session.run(tf.compat.v1.global_variables_initializer())
        results.append(session.run(output, {self._ids: np.arange(200)}))
    np.testing.assert_array_equal(*results)

  def test_no_ids(self):
    v = sok.DynamicVariable(2, filter_ratio=.5)
    self.assertEqual(self._session().run(self._lookup(v), {self._ids: []}).shape, (0, 2))

  def test_refuses_other_variables(self):
    for v in (sok.DynamicVariable(2, var_type="auto"), sok.Variable(np.ones([2, 2])),
              tf.get_embedding_variable("e", embedding_dim=2)):
      with self.assertRaisesRegex(TypeError, "needs sok.DynamicVariables of var_type"):
        self._lookup(v)


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of presence_ops."""

from absl.testing import absltest
import numpy as np
import tensorflow as tf

from embedding_variable.ops import gather_ops
from embedding_variable.ops import presence_ops
from embedding_variable.ops import testing

_DIM = 3


class PresenceOpsTest(absltest.TestCase):

  def setUp(self):
    super(PresenceOpsTest, self).setUp()
    tf.compat.v1.reset_default_graph()
    self.table = testing.Table("t", _DIM)

  def test_extreme_keys_are_absent_until_they_are_inserted(self):
    keys = np.array(testing.EXTREME_KEYS, np.int64)
    values = np.arange(len(keys) * _DIM, dtype=np.float32).reshape(-1, _DIM)
    tiers = presence_ops.lookup_tier(self.table.handle, keys)
    insert = presence_ops.insert_absent(self.table.handle, keys, values)
    rows = gather_ops.gather(self.table.handle, keys)
    with testing.session() as session:
      session.run(self.table.init)
      np.testing.assert_array_equal(session.run(tiers), [-1] * len(keys))
      session.run(insert)
      np.testing.assert_array_equal(session.run(tiers), [0] * len(keys))
      np.testing.assert_array_equal(session.run(rows), values)

  def test_ids_of_any_shape_and_type(self):
    ids = tf.constant([[1, 2], [3, 1]], tf.int32)
    tiers = presence_ops.lookup_tier(self.table.handle, ids)
    self.assertEqual(tiers.shape.as_list(), [2, 2])
    insert = presence_ops.insert_absent(self.table.handle, tf.constant([1], tf.int64),
                                        tf.zeros([1, _DIM]))
    with testing.session() as session:
      session.run(self.table.init)
      session.run(insert)
      np.testing.assert_array_equal(session.run(tiers), [[0, -1], [-1, 0]])

  def test_wrong_values_are_refused_with_the_name(self):
    with self.assertRaisesRegex(ValueError, r"values: expected shape \[2,3\]"):
      presence_ops.insert_absent(self.table.handle, tf.constant([1, 2], tf.int64),
                                 tf.zeros([2, _DIM + 1]))
    values = tf.compat.v1.placeholder_with_default(np.zeros([1, _DIM], np.float32), None)
    insert = presence_ops.insert_absent(self.table.handle, tf.constant([1, 2], tf.int64),
                                        values)
    with testing.session() as session:
      session.run(self.table.init)
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "variable 't'.*values"):
        session.run(insert)

  def test_a_table_that_is_not_initialized_is_an_error(self):
    tiers = presence_ops.lookup_tier(self.table.handle, tf.constant([1]))
    with testing.session() as session:
      with self.assertRaisesRegex(tf.errors.FailedPreconditionError, "'t'"):
        session.run(tiers)

  def test_initial_rows_are_read_by_absent_keys_only(self):
    ids = tf.constant([[5, 6]], tf.int64)
    insert = presence_ops.insert_absent(self.table.handle, tf.constant([5], tf.int64),
                                        tf.ones([1, _DIM]))
    rows = gather_ops.gather(self.table.handle, ids)
    chosen = presence_ops.with_initial_rows(self.table.handle, ids, rows,
                                            tf.fill([1, 2, _DIM], 9.0))
    self.assertEqual(chosen.shape.as_list(), [1, 2, _DIM])
    with testing.session() as session:
      session.run(self.table.init)
      session.run(insert)
      for _ in range(2):  # reading inserts nothing
        np.testing.assert_array_equal(session.run(chosen), [[[1.] * 3, [9.] * 3]])

  def test_the_gradient_inserts_and_is_the_tables(self):
    ids = tf.constant([5, 6], tf.int64)
    initial = tf.fill([2, _DIM], 9.0)
    rows = gather_ops.gather(self.table.handle, ids)
    chosen = presence_ops.with_initial_rows(self.table.handle, ids, rows, initial)
    grad, to_initial = tf.gradients(tf.reduce_sum(chosen * 2.0),
                                    [self.table.handle, initial])
    self.assertIsNone(to_initial)
    tiers = presence_ops.lookup_tier(self.table.handle, ids)
    with testing.session() as session:
      session.run(self.table.init)
      values, indices = session.run([grad.values, grad.indices])
      np.testing.assert_array_equal(indices, [5, 6])
      np.testing.assert_array_equal(values, np.full([2, _DIM], 2.0))
      np.testing.assert_array_equal(session.run(tiers), [0, 0])
      np.testing.assert_array_equal(session.run(rows), np.full([2, _DIM], 9.0))


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests EvGather and EvGetMeta against NumPy, and the gradient."""

import itertools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable.ops import apply_ops
from embedding_variable.ops import gather_ops
from embedding_variable.ops import handle_ops
from embedding_variable.ops import row_ops
from embedding_variable.ops import testing


class GatherOpsTest(parameterized.TestCase, tf.test.TestCase):

  def setUp(self):
    super(GatherOpsTest, self).setUp()
    tf.compat.v1.reset_default_graph()

  @parameterized.parameters(
      *itertools.product((np.int64, np.int32),
                         ([], [0], [5], [2, 3], [2, 0, 3])))
  def test_absent_keys_read_default_rows(self, dtype, shape):
    table = testing.Table("user", 3)
    ids = np.random.RandomState(1).randint(-100, 100, size=shape).astype(dtype)
    rows = gather_ops.gather(table.handle, ids)
    self.assertEqual(list(shape) + [3], rows.shape.as_list())
    keys = handle_ops.shape(table.handle)
    with testing.session() as sess:
      sess.run(table.init)
      got = sess.run(rows)
      self.assertAllEqual(list(shape) + [3], got.shape)
      self.assertAllEqual(
          testing.rows_of(ids, table.defaults), got.reshape([-1, 3]))
      self.assertAllEqual([0, 3], sess.run(keys))

  def test_extreme_keys(self):
    table = testing.Table("user", 4)
    ids = testing.EXTREME_KEYS
    rows = gather_ops.gather(table.handle, tf.constant(ids, tf.int64))
    written = np.arange(len(ids) * 4, dtype=np.float32).reshape([-1, 4])
    write = row_ops.write_rows(table.handle, tf.constant(ids, tf.int64),
                               [1] * len(ids), 0, written, [], [], [])
    with testing.session() as sess:
      sess.run(table.init)
      self.assertAllEqual(testing.rows_of(ids, table.defaults), sess.run(rows))
      sess.run(write)
      self.assertAllEqual(written, sess.run(rows))

  def test_int32_and_int64_are_the_same_keys(self):
    table = testing.Table("user", 2)
    ids = [-3, 7, 2**31 - 1, -2**31]
    write = row_ops.write_rows(
        table.handle, tf.constant(ids, tf.int64), [1] * 4, 0,
        np.arange(8, dtype=np.float32).reshape([4, 2]), [], [], [])
    narrow = gather_ops.gather(table.handle, tf.constant(ids, tf.int32))
    wide = gather_ops.gather(table.handle, tf.constant(ids, tf.int64))
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(write)
      self.assertAllEqual(*sess.run([narrow, wide]))
      self.assertAllEqual([6, 7], sess.run(narrow)[3])

  def test_float_ids_are_refused(self):
    table = testing.Table("user", 2)
    with self.assertRaises(TypeError):
      gather_ops.gather(table.handle, [1.0, 2.0])

  def test_many_ids_use_all_threads_and_give_the_same_bits(self):
    table = testing.Table("user", 5, num_rows=100)
    ids = np.random.RandomState(0).randint(-2**62, 2**62, size=200000)
    rows = gather_ops.gather(table.handle, ids)
    want = testing.rows_of(ids, table.defaults)
    for threads in (1, 2, 8):
      with testing.session(intra=threads) as sess:
        sess.run(table.init)
        self.assertAllEqual(want, sess.run(rows))

  def test_shape_without_handle_data_is_unknown(self):
    resource = tf.compat.v1.placeholder(tf.resource, [])
    rows = gather_ops.gather(resource, [1, 2])
    self.assertEqual([2, None], rows.shape.as_list())

  def test_meta(self):
    table = testing.Table("user", 2, record_frequency=True, record_version=True)
    ids = tf.constant([[7, 9], [7, 11]], tf.int64)
    frequencies, versions = gather_ops.get_meta(table.handle, ids)
    self.assertEqual([2, 2], frequencies.shape.as_list())
    self.assertEqual([2, 2], versions.shape.as_list())
    update = apply_ops.apply("SGD", [table.handle], [[7, 9, 7]],
                             [np.ones([3, 2], np.float32)], [0.1], 41, [[]],
                             [[]])
    with testing.session() as sess:
      sess.run(table.init)
      got = sess.run([frequencies, versions])
      self.assertAllEqual([[0, 0], [0, 0]], got[0])
      self.assertAllEqual([[-1, -1], [-1, -1]], got[1])
      sess.run(update)
      got = sess.run([frequencies, versions])
      self.assertAllEqual([[2, 1], [2, 0]], got[0])
      self.assertAllEqual([[41, 41], [41, -1]], got[1])

  def test_meta_that_is_not_recorded(self):
    table = testing.Table("user", 2)
    frequencies, versions = gather_ops.get_meta(table.handle, [7])
    update = apply_ops.apply("SGD", [table.handle], [[7]],
                             [np.ones([1, 2], np.float32)], [0.1], 41, [[]],
                             [[]])
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(update)
      self.assertAllEqual([[0], [-1]], sess.run([frequencies, versions]))

  def test_gradient_is_one_slice_per_id(self):
    table = testing.Table("user", 2)
    ids = tf.constant([[3, 4], [3, 3]], tf.int32)
    rows = gather_ops.gather(table.handle, ids)
    scale = np.arange(8, dtype=np.float32).reshape([2, 2, 2])
    grad, = tf.gradients(tf.reduce_sum(rows * scale), [table.handle])
    self.assertIsInstance(grad, tf.IndexedSlices)
    self.assertIsNone(grad.dense_shape)
    self.assertEqual(tf.int64, grad.indices.dtype)
    self.assertEqual([4, 2], grad.values.shape.as_list())
    with testing.session() as sess:
      sess.run(table.init)
      values, indices = sess.run([grad.values, grad.indices])
      self.assertAllEqual(scale.reshape([4, 2]), values)
      self.assertAllEqual([3, 4, 3, 3], indices)

  def test_gradient_of_no_ids(self):
    table = testing.Table("user", 3)
    ids = tf.compat.v1.placeholder(tf.int64)
    rows = gather_ops.gather(table.handle, ids)
    grad, = tf.gradients(tf.reduce_sum(rows), [table.handle])
    with testing.session() as sess:
      sess.run(table.init)
      values, indices = sess.run([grad.values, grad.indices],
                                 {ids: np.zeros([0, 2])})
      self.assertEqual((0, 3), values.shape)
      self.assertEqual((0,), indices.shape)

  def test_gradient_of_a_gather_of_rows(self):
    # The incoming gradient is itself an IndexedSlices.
    table = testing.Table("user", 2)
    rows = gather_ops.gather(table.handle, [5, 6, 7])
    grad, = tf.gradients(
        tf.reduce_sum(tf.gather(rows, [2, 2, 0])), [table.handle])
    with testing.session() as sess:
      sess.run(table.init)
      values, indices = sess.run([grad.values, grad.indices])
      self.assertAllEqual([5, 6, 7], indices)
      self.assertAllEqual([[1, 1], [0, 0], [2, 2]], values)

  def test_update_never_overtakes_the_lookup(self):
    # The gradient of a sum does not depend on the rows, so only the gradient
    # function's control dependency orders the two.
    table = testing.Table("user", 2)
    rows = gather_ops.gather(table.handle, [5])
    grad, = tf.gradients(tf.reduce_sum(rows), [table.handle])
    update = apply_ops.apply("SGD", [table.handle], [grad.indices],
                             [grad.values], [1.0], 0, [[]], [[]])
    with testing.session(inter=4) as sess:
      sess.run(table.init)
      want = sess.run(rows)
      for _ in range(300):
        got, _ = sess.run([rows, update])
        self.assertAllClose(want, got, atol=1e-4)
        want = want - 1

  def test_lookup_inside_a_while_loop(self):
    table = testing.Table("user", 2)
    ids = tf.constant([3, 4, 3], tf.int64)

    def body(i, total):
      return i + 1, total + tf.reduce_sum(
          gather_ops.gather(table.handle, ids[i:i + 1]))

    _, total = tf.while_loop(lambda i, _: i < 3, body, [0, 0.0])
    grad, = tf.gradients(total, [table.handle])
    with testing.session() as sess:
      sess.run(table.init)
      got, values, indices = sess.run([total, grad.values, grad.indices])
      self.assertAllClose(
          np.sum(testing.rows_of([3, 4, 3], table.defaults)), got)
      summed = {}
      for index, value in zip(indices, values):
        summed[index] = summed.get(index, 0) + value
      self.assertAllClose([2, 2], summed[3])
      self.assertAllClose([1, 1], summed[4])

  def test_lookup_inside_a_tf_function(self):
    table = testing.Table("user", 2)

    @tf.function
    def lookup(ids):
      return tf.reduce_sum(gather_ops.gather(table.handle, ids))

    total = lookup(tf.constant([3, 4], tf.int64))
    with testing.session() as sess:
      sess.run(table.init)
      self.assertAllClose(
          np.sum(testing.rows_of([3, 4], table.defaults)), sess.run(total))


if __name__ == "__main__":
  absltest.main()

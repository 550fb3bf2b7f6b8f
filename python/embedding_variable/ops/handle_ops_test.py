# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests handles, initialisation and size; one table per session."""

import subprocess
import sys
import textwrap

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable.ops import apply_ops
from embedding_variable.ops import gather_ops
from embedding_variable.ops import handle_ops
from embedding_variable.ops import testing
from embedding_variable.tf_names import resource_variable_ops


class HandleOpsTest(parameterized.TestCase, tf.test.TestCase):

  def setUp(self):
    super(HandleOpsTest, self).setUp()
    tf.compat.v1.reset_default_graph()

  def test_handle_data_is_dtype_and_shape(self):
    table = testing.Table("user", 3)
    op = table.handle.op
    self.assertEqual(tf.float32, op.get_attr("dtype"))
    self.assertEqual([-1, 3], [d.size for d in op.get_attr("shape").dim])
    data = resource_variable_ops.get_eager_safe_handle_data(table.handle)
    self.assertEqual(3, data.shape_and_type[0].shape.dim[1].size)
    self.assertTrue(op.op_def.is_stateful)

  @parameterized.parameters(0, -1)
  def test_bad_dim_is_an_error_that_names_the_variable(self, dim):
    with self.assertRaisesRegex(ValueError, "'user'.*dim: expected >= 1"):
      handle_ops.handle("user", dim)

  def test_bad_key_dtype(self):
    with self.assertRaises(TypeError):
      handle_ops.handle("user", 3, key_dtype=tf.string)

  def test_reading_is_initialized_never_fails(self):
    table = testing.Table("user", 3)
    flag = handle_ops.is_initialized(table.handle)
    self.assertEqual([], flag.shape.as_list())
    with testing.session() as sess:
      self.assertFalse(sess.run(flag))
      sess.run(table.init)
      self.assertTrue(sess.run(flag))

  def test_shape_and_stats(self):
    table = testing.Table("user", 3)
    shape = handle_ops.shape(table.handle)
    stats = handle_ops.stats(table.handle)
    update = apply_ops.apply("SGD", [table.handle], [[5, 6, 5]],
                             [np.ones([3, 3], np.float32)], [0.1], 0, [[]],
                             [[]])
    self.assertEqual([2], shape.shape.as_list())
    self.assertEqual([4], stats.shape.as_list())
    with testing.session() as sess:
      sess.run(table.init)
      self.assertAllEqual([0, 3], sess.run(shape))
      sess.run(update)
      self.assertAllEqual([2, 3], sess.run(shape))
      rows, index_bytes, row_bytes, inserted = sess.run(stats)
      self.assertEqual(2, rows)
      self.assertGreater(index_bytes, 0)
      self.assertGreaterEqual(row_bytes, 2 * 3 * 4)
      self.assertEqual(2, inserted)

  def test_initialize_again_empties(self):
    table = testing.Table("user", 2)
    update = apply_ops.apply("SGD", [table.handle], [[5]],
                             [np.ones([1, 2], np.float32)], [0.1], 0, [[]],
                             [[]])
    rows = gather_ops.gather(table.handle, [5])
    shape = handle_ops.shape(table.handle)
    with testing.session() as sess:
      sess.run(table.init)
      before = sess.run(rows)
      sess.run(update)
      self.assertNotAllClose(before, sess.run(rows))
      sess.run(table.init)
      self.assertAllEqual(before, sess.run(rows))
      self.assertAllEqual([0, 2], sess.run(shape))

  @parameterized.parameters([[2, 3]], [[0, 2]], [[2]], [[1, 1, 2]])
  def test_bad_default_rows(self, shape):
    handle = handle_ops.handle("user", 2)
    rows = tf.compat.v1.placeholder(tf.float32)
    init = handle_ops.initialize(handle, rows)
    flag = handle_ops.is_initialized(handle)
    with testing.session() as sess:
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  "'user'.*default rows"):
        sess.run(init, {rows: np.zeros(shape)})
      self.assertFalse(sess.run(flag))

  def test_bad_default_rows_are_seen_at_construction(self):
    handle = handle_ops.handle("user", 2)
    with self.assertRaisesRegex(ValueError, "default_rows: expected shape"):
      handle_ops.initialize(handle, np.zeros([4, 3], np.float32))
    with self.assertRaises((TypeError, ValueError)):
      handle_ops.initialize(handle, tf.zeros([4, 2], tf.float64))

  def test_two_sessions_have_two_tables(self):
    table = testing.Table("user", 2)
    update = apply_ops.apply("SGD", [table.handle], [[5]],
                             [np.ones([1, 2], np.float32)], [0.1], 0, [[]],
                             [[]])
    shape = handle_ops.shape(table.handle)
    flag = handle_ops.is_initialized(table.handle)
    with testing.session() as one, testing.session() as two:
      one.run(table.init)
      one.run(update)
      self.assertFalse(two.run(flag))
      two.run(table.init)
      self.assertAllEqual([0, 2], two.run(shape))
      self.assertAllEqual([1, 2], one.run(shape))

  def test_one_name_is_one_table(self):
    table = testing.Table("user", 2)
    again = handle_ops.handle("user", 2)
    other = handle_ops.handle("item", 2)
    with testing.session() as sess:
      sess.run(table.init)
      self.assertTrue(sess.run(handle_ops.is_initialized(again)))
      self.assertFalse(sess.run(handle_ops.is_initialized(other)))

  @parameterized.parameters(
      ({"dim": 3}, "dim 2 and 3"),
      ({"dim": 2, "record_version": True}, "record_version 0 and 1"))
  def test_one_name_with_two_layouts_is_an_error(self, layout, message):
    table = testing.Table("user", 2)
    other = handle_ops.is_initialized(handle_ops.handle("user", **layout))
    with testing.session() as sess:
      sess.run(table.init)
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  "'user'.*" + message):
        sess.run(other)

  def test_use_before_initialisation_names_variable_and_remedy(self):
    table = testing.Table("user", 2)
    rows = gather_ops.gather(table.handle, [1])
    with testing.session() as sess:
      with self.assertRaisesRegex(
          tf.errors.FailedPreconditionError,
          "'user' is not initialized.*global_variables_initializer"):
        sess.run(rows)
      sess.run(table.init)
      sess.run(rows)

  def test_a_foreign_handle_is_an_error(self):
    stock = tf.compat.v1.get_variable("stock", [3, 2], use_resource=True)
    rows = gather_ops.gather(stock.handle, [1])
    with testing.session() as sess:
      sess.run(stock.initializer)
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "wrong type"):
        sess.run(rows)

  def test_session_reset_takes_the_table_away_but_not_the_name(self):
    server = tf.distribute.Server.create_local_server()
    table = testing.Table("user", 2)
    flag = handle_ops.is_initialized(table.handle)
    with tf.compat.v1.Session(server.target) as sess:
      sess.run(table.init)
      self.assertTrue(sess.run(flag))
    tf.compat.v1.Session.reset(server.target)
    with tf.compat.v1.Session(server.target) as sess:
      self.assertFalse(sess.run(flag))
      sess.run(table.init)
      self.assertTrue(sess.run(flag))

  def test_process_ends_cleanly_with_a_live_session(self):
    program = textwrap.dedent("""
        import sys
        sys.path[:0] = %r
        import numpy as np, tensorflow as tf
        from embedding_variable.ops import apply_ops, lookup_sparse_ops, testing
        t = testing.Table("user", 2)
        out, plan = lookup_sparse_ops.lookup_sparse(
            [t.handle], [[1, 2]], [[0, 1, 2]], [2], ["sum"], [2])
        s = tf.compat.v1.Session()
        s.run(t.init)
        kept = s.run(out)
        s.run(apply_ops.apply("SGD", [t.handle], [[1]],
                              [np.ones([1, 2], np.float32)], [.1], 0, [[]], [[]]))
        print("done")
    """) % (sys.path,)
    result = subprocess.run([sys.executable, "-c", program],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            universal_newlines=True)
    self.assertEqual(0, result.returncode, result.stderr)
    self.assertEqual("done\n", result.stdout)


if __name__ == "__main__":
  absltest.main()

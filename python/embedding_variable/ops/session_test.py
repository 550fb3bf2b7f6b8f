# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the ops in a session: concurrency, memory, optimisation, devices."""

import gc
import threading

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable.ops import apply_ops
from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import gather_ops
from embedding_variable.ops import handle_ops
from embedding_variable.ops import lookup_sparse_ops
from embedding_variable.ops import row_ops
from embedding_variable.ops import testing


def _resident_bytes():
  with open("/proc/self/statm") as f:
    return int(f.read().split()[1]) * 4096


def _train_step(tables, ids, splits, batch_size, rate=1.0):
  """Returns (outputs, update op) of one fused lookup and SGD."""
  outputs, plan = lookup_sparse_ops.lookup_sparse(
      [t.handle for t in tables], ids, splits, [batch_size] * len(tables),
      ["sum"] * len(tables), [t.dim for t in tables])
  grads = tf.gradients(
      tf.add_n([tf.reduce_sum(o) for o in outputs]), [t.handle for t in tables])
  update = apply_ops.apply(
      "SGD", [t.handle for t in tables], [g.indices for g in grads],
      [g.values for g in grads], [rate], 0, [[]] * len(tables),
      [[]] * len(tables), plan=plan, plan_tables=list(range(len(tables))))
  return outputs, update


class SessionTest(parameterized.TestCase, tf.test.TestCase):

  def setUp(self):
    super(SessionTest, self).setUp()
    tf.compat.v1.reset_default_graph()

  @parameterized.parameters(1, 2)
  def test_concurrent_steps_lose_no_update(self, intra):
    tables = [testing.Table("a", 3), testing.Table("b", 5)]
    ids = tf.compat.v1.placeholder(tf.int64, [None])
    splits = tf.compat.v1.placeholder(tf.int64, [None])
    size = tf.compat.v1.placeholder(tf.int64, [])
    outputs, update = _train_step(tables, [ids, ids], [splits, splits], size)
    exports = [checkpoint_ops.export_table(t.handle) for t in tables]
    steps = 40
    errors = []
    counts = np.zeros([4, 500], np.int64)
    with testing.session(intra=intra, inter=4) as sess:
      sess.run([t.init for t in tables])

      def work(thread):
        rng = np.random.RandomState(thread)
        try:
          for _ in range(steps):
            batch = rng.zipf(1.3, size=200) % 500
            np.add.at(counts[thread], batch, 1)
            sess.run([outputs, update], {
                ids: batch, splits: np.arange(0, 201, 4), size: 50
            })
        except Exception as e:  # pylint: disable=broad-except
          errors.append(e)

      threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
      for thread in threads:
        thread.start()
      for thread in threads:
        thread.join()
      self.assertEqual([], errors)
      total = counts.sum(0)
      keys = [k for k in range(500) if total[k]]
      for table, got in zip(tables, sess.run(exports)):
        self.assertAllEqual(keys, got.keys)
        self.assertAllClose(
            testing.rows_of(keys, table.defaults) - total[keys, None],
            got.values, rtol=1e-4, atol=1e-3)

  def test_readers_writers_erasers_and_exporters_together(self):
    table = testing.Table("user", 4)
    ids = tf.compat.v1.placeholder(tf.int64, [None])
    outputs, update = _train_step([table], [ids], [[0, 100]], 1, rate=0.0)
    fetches = [
        [outputs, update],
        gather_ops.gather(table.handle, ids),
        row_ops.erase(table.handle, ids),
        checkpoint_ops.export_table(table.handle),
        row_ops.read_rows(table.handle, ids, ["late"], [0.0]),
    ]
    errors = []
    with testing.session(inter=4) as sess:
      sess.run(table.init)

      def work(kind):
        rng = np.random.RandomState(kind)
        try:
          for _ in range(60):
            batch = rng.choice(400, size=100, replace=False)
            got = sess.run(fetches[kind], {ids: batch})
            if kind == 1:
              # With a rate of 0, every row stays as it was created.
              np.testing.assert_array_equal(
                  testing.rows_of(batch, table.defaults), got)
            if kind == 3:
              np.testing.assert_array_equal(
                  testing.rows_of(got.keys, table.defaults), got.values)
        except Exception as e:  # pylint: disable=broad-except
          errors.append(e)

      threads = [
          threading.Thread(target=work, args=(k,))
          for k in range(len(fetches))
      ]
      for thread in threads:
        thread.start()
      for thread in threads:
        thread.join()
    self.assertEqual([], errors)

  def test_memory_does_not_grow_over_steps(self):
    # A leak of 1000 plans of about 1 MB each would be detected.
    table = testing.Table("user", 8)
    ids = np.random.RandomState(0).randint(0, 20000, size=40000)
    _, update = _train_step([table], [ids], [np.arange(0, 40001, 4)], 10000)
    with testing.session() as sess:
      sess.run(table.init)
      for _ in range(50):
        sess.run(update)
      gc.collect()
      before = _resident_bytes()
      for _ in range(1000):
        sess.run(update)
      self.assertLess(_resident_bytes() - before, 60e6)

  def test_closed_session_gives_the_table_back(self):
    table = testing.Table("user", 64)
    keys = np.arange(200000)
    write = row_ops.write_rows(table.handle, keys, np.ones_like(keys), 0,
                               tf.zeros([len(keys), 64]), [], [], [])
    resident = []
    for _ in range(14):
      with testing.session() as sess:
        sess.run(table.init)
        sess.run(write)
      gc.collect()
      resident.append(_resident_bytes() // 1000000)
    # A leak of twelve tables of 51 MB would exceed this. The allocator's free memory
    # was seen to vary by two of them.
    self.assertLess(resident[-1] - resident[1], 300, resident)

  def test_nothing_is_folded_or_merged(self):
    # With constant ids and equal inputs, Grappler would do both.
    table = testing.Table("user", 2)
    splits = tf.constant([0, 2], tf.int64)
    ids = tf.constant([1, 2], tf.int64)

    def lookups():
      (pooled,), _ = lookup_sparse_ops.lookup_sparse([table.handle], [ids],
                                                     [splits], [1], ["sum"],
                                                     [2])
      return pooled, gather_ops.gather(table.handle, ids)

    first = lookups()
    with tf.control_dependencies(list(first)):
      update = apply_ops.apply("SGD", [table.handle], [ids],
                               [np.ones([2, 2], np.float32)], [1.0], 0, [[]],
                               [[]])
    with tf.control_dependencies([update]):
      second = lookups()
    with testing.session() as sess:
      sess.run(table.init)
      for _ in range(3):
        (pooled, rows), (pooled2, rows2) = sess.run([first, second])
        self.assertAllClose(rows - 1, rows2)
        self.assertAllClose(pooled - 2, pooled2)

  def test_ops_are_stateful_but_the_gradient_of_a_lookup(self):
    table = testing.Table("user", 2)
    keys = tf.constant([1], tf.int64)
    _train_step([table], [keys], [[0, 1]], 1)
    row_ops.unique(keys)
    row_ops.erase(table.handle, keys)
    checkpoint_ops.export_table(table.handle)
    handle_ops.stats(table.handle)
    seen = set()
    for op in tf.compat.v1.get_default_graph().get_operations():
      if op.type.startswith("Ev"):
        seen.add(op.type)
        # A tf.function would run it beside the EvApplyPooled that replaces it.
        self.assertEqual(op.type != "EvLookupSparseGrad", op.op_def.is_stateful, op.type)
    self.assertIn("EvLookupSparseGrad", seen)
    self.assertIn("EvUnique", seen)

  def test_soft_placement_on_a_gpu_scope(self):
    with tf.device("/gpu:0"):
      table = testing.Table("user", 2)
      _, update = _train_step([table], [[1]], [[0, 1]], 1)
      shape = handle_ops.shape(table.handle)
    config = tf.compat.v1.ConfigProto(allow_soft_placement=True)
    with tf.compat.v1.Session(config=config) as sess:
      sess.run(table.init)
      sess.run(update)
      self.assertAllEqual([1, 2], sess.run(shape))

  def test_an_error_in_one_table_leaves_all_as_they_were(self):
    tables = [testing.Table("a", 2), testing.Table("b", 2)]
    bad = tf.compat.v1.placeholder(tf.int64, [None])
    outputs, update = _train_step(tables, [[1, 2], [1, 2]], [[0, 2], bad], 1)
    sizes = [handle_ops.shape(t.handle) for t in tables]
    with testing.session() as sess:
      sess.run([t.init for t in tables])
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "'b'"):
        sess.run([outputs, update], {bad: [0, 1]})
      self.assertAllEqual([[0, 2], [0, 2]], sess.run(sizes))
      sess.run([outputs, update], {bad: [0, 2]})
      self.assertAllEqual([[2, 2], [2, 2]], sess.run(sizes))


if __name__ == "__main__":
  absltest.main()

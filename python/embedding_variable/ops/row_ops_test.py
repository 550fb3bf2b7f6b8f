# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests unique, whole rows and erase against NumPy and a dictionary."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable.ops import gather_ops
from embedding_variable.ops import handle_ops
from embedding_variable.ops import row_ops
from embedding_variable.ops import testing


class RowOpsTest(parameterized.TestCase, tf.test.TestCase):

  def setUp(self):
    super(RowOpsTest, self).setUp()
    tf.compat.v1.reset_default_graph()

  @parameterized.parameters(0, 1, 7, 1000, 50000)
  def test_unique_in_order_of_first_occurrence(self, size):
    rng = np.random.RandomState(size)
    keys = rng.randint(-size // 3 - 1, size // 3 + 1, size=size)
    keys[:len(testing.EXTREME_KEYS)] = testing.EXTREME_KEYS[:size]
    unique, inverse, counts = row_ops.unique(tf.constant(keys, tf.int64))
    self.assertEqual([size], inverse.shape.as_list())
    with testing.session() as sess:
      unique, inverse, counts = sess.run([unique, inverse, counts])
    _, first, want_counts = np.unique(keys, return_index=True,
                                      return_counts=True)
    order = np.argsort(first)
    self.assertAllEqual(keys[np.sort(first)], unique)
    self.assertAllEqual(want_counts[order], counts)
    self.assertAllEqual(keys, unique[inverse])

  def test_unique_of_a_matrix(self):
    with self.assertRaisesRegex(ValueError, "keys: expected rank 1"):
      row_ops.unique([[1, 2]])
    keys = tf.compat.v1.placeholder(tf.int64)
    unique, _, _ = row_ops.unique(keys)
    with testing.session() as sess:
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  "keys: expected a vector"):
        sess.run(unique, {keys: [[1]]})

  def test_write_then_read(self):
    table = testing.Table("user", 3, record_frequency=True,
                          record_version=True)
    rng = np.random.RandomState(0)
    values, one, two = [rng.randn(2, 3).astype(np.float32) for _ in range(3)]
    slots = ["Adam", "Adam_1"]
    write = row_ops.write_rows(table.handle, [8, -8], [3, 1], 11, values,
                               [one, two], slots, [0.0, 0.5])
    read = row_ops.read_rows(table.handle, [-8, 4, 8], slots, [0.0, 0.5])
    self.assertEqual([3, 3], read[0].shape.as_list())
    self.assertEqual([3, 3], read[1][1].shape.as_list())
    meta = gather_ops.get_meta(table.handle, [8, -8, 4])
    keys = handle_ops.shape(table.handle)
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(write)
      got_values, got_slots = sess.run(read)
      fresh = testing.rows_of([4], table.defaults)[0]
      self.assertAllEqual([values[1], fresh, values[0]], got_values)
      self.assertAllEqual([one[1], [0] * 3, one[0]], got_slots[0])
      self.assertAllEqual([two[1], [0.5] * 3, two[0]], got_slots[1])
      self.assertAllEqual([2, 3], sess.run(keys))
      frequencies, versions = sess.run(meta)
      self.assertAllEqual([3, 1, 0], frequencies)
      self.assertAllEqual([11, 11, -1], versions)
      sess.run(write)
      self.assertAllEqual([6, 2, 0], sess.run(meta[0]))

  def test_read_without_slots(self):
    table = testing.Table("user", 3)
    values, slots = row_ops.read_rows(table.handle, [1], [], [])
    self.assertEqual([], slots)
    with testing.session() as sess:
      sess.run(table.init)
      self.assertAllEqual(testing.rows_of([1], table.defaults),
                          sess.run(values))

  def test_erase_counts_existing_keys(self):
    table = testing.Table("user", 2)
    keys = list(range(10)) + testing.EXTREME_KEYS[3:]
    write = row_ops.write_rows(
        table.handle, tf.constant(keys, tf.int64), [1] * len(keys), 0,
        np.zeros([len(keys), 2], np.float32), [], [], [])
    erased = row_ops.erase(table.handle,
                           tf.constant([[3, 3], [77, -2**63]], tf.int64))
    self.assertEqual([], erased.shape.as_list())
    rows = gather_ops.gather(table.handle,
                             tf.constant([3, -2**63, 4], tf.int64))
    size = handle_ops.shape(table.handle)
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(write)
      self.assertEqual(2, sess.run(erased))
      self.assertEqual(0, sess.run(erased))
      self.assertEqual(len(keys) - 2, sess.run(size)[0])
      want = testing.rows_of([3, -2**63, 4], table.defaults)
      want[2] = 0
      self.assertAllEqual(want, sess.run(rows))

  def test_random_operations_against_a_dictionary(self):
    table = testing.Table("user", 2)
    keys = tf.compat.v1.placeholder(tf.int64, [None])
    values = tf.compat.v1.placeholder(tf.float32, [None, 2])
    write = row_ops.write_rows(table.handle, keys,
                               tf.ones_like(keys), 0, values, [], [], [])
    erase = row_ops.erase(table.handle, keys)
    read = gather_ops.gather(table.handle, keys)
    size = handle_ops.shape(table.handle)
    rng = np.random.RandomState(4)
    model = {}
    with testing.session() as sess:
      sess.run(table.init)
      for _ in range(60):
        some = np.unique(rng.randint(-300, 300, size=rng.randint(1, 200)))
        rng.shuffle(some)
        if rng.rand() < 0.6:
          new = rng.randn(len(some), 2).astype(np.float32)
          sess.run(write, {keys: some, values: new})
          model.update(zip(some, new))
        else:
          want = len(set(some) & set(model))
          self.assertEqual(want, sess.run(erase, {keys: some}))
          for key in some:
            model.pop(key, None)
        probe = rng.randint(-310, 310, size=50)
        want = [
            model.get(k, table.defaults[k % len(table.defaults)])
            for k in probe
        ]
        self.assertAllEqual(want, sess.run(read, {keys: probe}))
        self.assertEqual(len(model), sess.run(size)[0])

  @parameterized.parameters(
      (dict(keys=[[1, 2]]), "keys: expected rank 1"),
      (dict(counts=[1]), ""),
      (dict(step=[1]), "step: expected rank 0"),
      (dict(values=np.zeros([1, 2], np.float32)), "values: expected shape"),
      (dict(values=np.zeros([2, 3], np.float32)), "values: expected shape"),
      (dict(slots=[np.zeros([2, 1], np.float32)]), "slot 1: expected shape"),
      (dict(slots=[]), "0 slots came with 1 names"),
      (dict(slot_inits=[]), "0 initial values"),
  )
  def test_wrong_write_at_construction(self, change, message):
    table = testing.Table("user", 2)
    args = dict(keys=[1, 2], counts=[1, 1], step=0,
                values=np.zeros([2, 2], np.float32),
                slots=[np.zeros([2, 2], np.float32)], slot_names=["s"],
                slot_inits=[0.0])
    args.update(change)
    with self.assertRaisesRegex(ValueError, message):
      row_ops.write_rows(table.handle, **args)

  @parameterized.parameters(
      (dict(keys=[1]), "'user'.*counts"),
      (dict(keys=[[1, 2]]), "'user'.*keys: expected a vector"),
      (dict(counts=[1]), "'user'.*counts"),
      (dict(step=[1]), "'user'.*step"),
      (dict(values=np.zeros([2, 3])), "'user'.*values"),
      (dict(slot=np.zeros([1, 2])), "'user'.*accumulator"),
  )
  def test_wrong_write_when_run(self, change, message):
    table = testing.Table("user", 2)
    right = dict(keys=[1, 2], counts=[1, 1], step=0, values=np.zeros([2, 2]),
                 slot=np.zeros([2, 2]))
    types = dict(keys=tf.int64, counts=tf.int64, step=tf.int64,
                 values=tf.float32, slot=tf.float32)
    fed = {k: tf.compat.v1.placeholder(types[k]) for k in right}
    write = row_ops.write_rows(table.handle, fed["keys"], fed["counts"],
                               fed["step"], fed["values"], [fed["slot"]],
                               ["accumulator"], [0.0])
    size = handle_ops.shape(table.handle)
    with testing.session() as sess:
      sess.run(table.init)
      wrong = dict(right, **change)
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, message):
        sess.run(write, {fed[k]: wrong[k] for k in fed})
      self.assertEqual(0, sess.run(size)[0])
      sess.run(write, {fed[k]: right[k] for k in fed})
      self.assertEqual(2, sess.run(size)[0])

  def test_before_initialisation(self):
    table = testing.Table("user", 2)
    keys = tf.constant([1], tf.int64)
    read, _ = row_ops.read_rows(table.handle, keys, [], [])
    write = row_ops.write_rows(table.handle, keys, [1], 0, [[1.0, 2.0]], [], [],
                               [])
    with testing.session() as sess:
      for op in (read, write):
        with self.assertRaisesRegex(tf.errors.FailedPreconditionError,
                                    "'user' is not initialized"):
          sess.run(op)


if __name__ == "__main__":
  absltest.main()

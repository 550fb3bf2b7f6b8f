# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests export and import: order, round trip, parts."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import handle_ops
from embedding_variable.ops import row_ops
from embedding_variable.ops import testing

_KEYS = testing.EXTREME_KEYS + list(range(2, 3000, 7))


def _write(table, keys, slot_names=(), step=5):
  """Returns the op that fills rows with values that identify key and slot."""
  n = len(keys)
  blocks = [
      np.random.RandomState(s).randn(n, table.dim).astype(np.float32)
      for s in range(1 + len(slot_names))
  ]
  op = row_ops.write_rows(table.handle, tf.constant(keys, tf.int64),
                          np.arange(n) + 1, step, blocks[0], blocks[1:],
                          list(slot_names), [0.0] * len(slot_names))
  return op, blocks


class CheckpointOpsTest(parameterized.TestCase, tf.test.TestCase):

  def setUp(self):
    super(CheckpointOpsTest, self).setUp()
    tf.compat.v1.reset_default_graph()

  def test_order_and_partition_offsets(self):
    table = testing.Table("user", 2, record_frequency=True,
                          record_version=True)
    write, blocks = _write(table, _KEYS, ["m"])
    exported = checkpoint_ops.export_table(table.handle, ["m"])
    self.assertEqual([1001], exported.partition_offset.shape.as_list())
    self.assertEqual([None, 2], exported.values.shape.as_list())
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(write)
      got = sess.run(exported)
    order = sorted(range(len(_KEYS)), key=lambda i: (_KEYS[i] % 1000, _KEYS[i]))
    self.assertAllEqual([_KEYS[i] for i in order], got.keys)
    self.assertAllEqual(blocks[0][order], got.values)
    self.assertAllEqual(blocks[1][order], got.slots[0])
    self.assertAllEqual(np.arange(1, len(_KEYS) + 1)[order], got.frequencies)
    self.assertAllEqual(np.full(len(_KEYS), 5), got.versions)
    remainders = np.array([k % 1000 for k in _KEYS])
    self.assertAllEqual(
        [np.sum(remainders < r) for r in range(1001)], got.partition_offset)

  def test_empty_table(self):
    table = testing.Table("user", 2)
    exported = checkpoint_ops.export_table(table.handle)
    with testing.session() as sess:
      sess.run(table.init)
      got = sess.run(exported)
    self.assertEqual((0, 2), got.values.shape)
    self.assertAllEqual(np.zeros(1001), got.partition_offset)

  def test_tensors_of_the_table_as_a_whole(self):
    table = testing.Table("user", 2)
    exported = checkpoint_ops.export_table(table.handle, tensor_types=[tf.float32])
    with testing.session() as sess:
      sess.run(table.init)
      self.assertAllEqual([table.defaults], sess.run(exported.tensors))

  def test_tensors_that_a_table_does_not_have(self):
    table = testing.Table("user", 2)
    wrong = [checkpoint_ops.export_table(table.handle, tensor_types=types)
             for types in ([tf.int64], [tf.float32] * 100)]
    with testing.session() as sess:
      sess.run(table.init)
      for exported in wrong:
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "does not fit"):
          sess.run(exported.keys)

  def test_meta_that_is_not_recorded_is_empty(self):
    table = testing.Table("user", 2)
    write, _ = _write(table, [1, 2])
    exported = checkpoint_ops.export_table(table.handle)
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(write)
      got = sess.run(exported)
      self.assertEqual((0,), got.versions.shape)
      self.assertEqual((0,), got.frequencies.shape)

  def test_slot_that_the_table_lacks(self):
    table = testing.Table("user", 2)
    exported = checkpoint_ops.export_table(table.handle, ["absent"])
    with testing.session() as sess:
      sess.run(table.init)
      with self.assertRaisesRegex(tf.errors.NotFoundError, "'absent'.*'user'"):
        sess.run(exported)

  def test_round_trip_gives_the_same_bytes(self):
    source, target = [
        testing.Table(name, 3, record_frequency=True, record_version=True)
        for name in ("one", "two")
    ]
    write, _ = _write(source, _KEYS, ["m", "v"])
    exported = checkpoint_ops.export_table(source.handle, ["m", "v"])
    restore = checkpoint_ops.import_table(
        target.handle, exported.keys, exported.values, exported.versions,
        exported.frequencies, exported.slots, ["m", "v"], [0.0, 0.0])
    again = checkpoint_ops.export_table(target.handle, ["m", "v"])
    with testing.session() as sess:
      sess.run([source.init, target.init])
      sess.run(write)
      sess.run(restore)
      for want, got in zip(*[tf.nest.flatten(e)
                             for e in sess.run([exported, again])]):
        self.assertEqual(want.tobytes(), got.tobytes())

  @parameterized.parameters(1, 2, 3, 7)
  def test_parts_partition_the_keys(self, num_parts):
    tables = [testing.Table("t%d" % p, 2) for p in range(num_parts)]
    keys = tf.constant(_KEYS, tf.int64)
    values = np.arange(2 * len(_KEYS), dtype=np.float32).reshape([-1, 2])
    none = tf.zeros([0], tf.int64)
    imports = [
        checkpoint_ops.import_table(t.handle, keys, values, none, none, part=p,
                                    num_parts=num_parts)
        for p, t in enumerate(tables)
    ]
    exports = [checkpoint_ops.export_table(t.handle) for t in tables]
    with testing.session() as sess:
      sess.run([t.init for t in tables])
      sess.run(imports)
      for part, got in enumerate(sess.run(exports)):
        want = {
            k: tuple(v) for k, v in zip(_KEYS, values)
            if k % 1000 % num_parts == part
        }
        self.assertEqual(
            want, {k: tuple(v) for k, v in zip(got.keys, got.values)})

  @parameterized.parameters(False, True)
  def test_import_into_a_table_that_has_rows(self, clear):
    table = testing.Table("user", 2, record_frequency=True,
                          record_version=True)
    write, _ = _write(table, [1, 2], ["m"])
    none = tf.zeros([0], tf.int64)
    restore = checkpoint_ops.import_table(
        table.handle, [2, 3], np.full([2, 2], 9, np.float32), none, none,
        slot_names=["m"], slots=[np.full([2, 2], 8, np.float32)],
        slot_inits=[0.0], clear=clear)
    exported = checkpoint_ops.export_table(table.handle, ["m"])
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(write)
      sess.run(restore)
      got = sess.run(exported)
      self.assertAllEqual([2, 3] if clear else [1, 2, 3], got.keys)
      self.assertAllEqual([[9, 9], [9, 9]], got.values[-2:])
      self.assertAllEqual([[8, 8], [8, 8]], got.slots[0][-2:])
      self.assertAllEqual([-1, -1], got.versions[-2:])
      self.assertAllEqual([0, 0], got.frequencies[-2:])

  def test_slots_that_are_not_given_get_their_initial_value(self):
    table = testing.Table("user", 2)
    none = tf.zeros([0], tf.int64)
    _, (slot,) = row_ops.read_rows(table.handle, [1], ["m"], [0.75])
    restore = checkpoint_ops.import_table(table.handle, [1], [[1.0, 2.0]], none,
                                          none)
    exported = checkpoint_ops.export_table(table.handle, ["m"])
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(slot)
      sess.run(restore)
      self.assertAllEqual([[0.75, 0.75]], sess.run(exported.slots[0]))

  @parameterized.parameters(
      (dict(values=np.zeros([2, 3])), "'user'.*values"),
      (dict(values=np.zeros([1, 2])), "'user'.*values"),
      (dict(keys=[[1, 2]]), "'user'.*keys: expected a vector"),
      (dict(versions=[1]), "'user'.*versions"),
      (dict(frequencies=[1, 2, 3]), "'user'.*frequencies"),
      (dict(slot=np.zeros([2, 1])), "'user'.*accumulator"),
  )
  def test_wrong_import_changes_nothing(self, change, message):
    table = testing.Table("user", 2)
    right = dict(keys=[1, 2], values=np.zeros([2, 2]), versions=[],
                 frequencies=[1, 2], slot=np.zeros([2, 2]))
    fed = {
        k: tf.compat.v1.placeholder(
            tf.float32 if k in ("values", "slot") else tf.int64)
        for k in right
    }
    restore = checkpoint_ops.import_table(
        table.handle, fed["keys"], fed["values"], fed["versions"],
        fed["frequencies"], [fed["slot"]], ["accumulator"], [0.0], clear=True)
    write, _ = _write(table, [7])
    size = handle_ops.shape(table.handle)
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(write)
      wrong = dict(right, **change)
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, message):
        sess.run(restore, {fed[k]: wrong[k] for k in fed})
      self.assertEqual(1, sess.run(size)[0])
      sess.run(restore, {fed[k]: right[k] for k in fed})
      self.assertEqual(2, sess.run(size)[0])

  def test_wrong_part_at_construction(self):
    table = testing.Table("user", 2)
    none = tf.zeros([0], tf.int64)
    with self.assertRaisesRegex(ValueError, "part: expected a number below"):
      checkpoint_ops.import_table(table.handle, none, tf.zeros([0, 2]), none,
                                  none, part=2, num_parts=2)

  def test_before_initialisation(self):
    table = testing.Table("user", 2)
    none = tf.zeros([0], tf.int64)
    restore = checkpoint_ops.import_table(table.handle, [1], [[1.0, 2.0]], none,
                                          none)
    exported = checkpoint_ops.export_table(table.handle)
    with testing.session() as sess:
      for fetch in (restore, exported):
        with self.assertRaisesRegex(tf.errors.FailedPreconditionError,
                                    "'user' is not initialized"):
          sess.run(fetch)


if __name__ == "__main__":
  absltest.main()

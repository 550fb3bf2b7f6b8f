# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests exporting and applying changes, and publishing."""

import os

from absl.testing import absltest
import numpy as np
import tensorflow as tf

from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import delta_ops
from embedding_variable.ops import row_ops
from embedding_variable.ops import testing


class DeltaOpsTest(tf.test.TestCase):

  def setUp(self):
    super(DeltaOpsTest, self).setUp()
    tf.compat.v1.reset_default_graph()
    self._keys = tf.compat.v1.placeholder(tf.int64, [None])
    self._value = tf.compat.v1.placeholder(tf.float32, [])
    self._since = tf.compat.v1.placeholder(tf.int64, [])

  def _table(self, name="user", **kwargs):
    table = testing.Table(name, 2, record_version=True, record_frequency=True,
                          **kwargs)
    n = tf.size(self._keys)
    rows = tf.fill([n, 2], self._value)
    table.write = row_ops.write_rows(
        table.handle, self._keys, tf.ones([n], tf.int64), tf.cast(self._value, tf.int64),
        rows, [-rows], ["m"], [0.0])
    table.erase = row_ops.erase(table.handle, self._keys)
    table.cut = delta_ops.cut_changes(table.handle)
    table.changes = delta_ops.export_changes(table.handle, self._since, ["m"])
    table.all = checkpoint_ops.export_table(table.handle, ["m"])
    return table

  def test_changed_and_erased_keys(self):
    table = self._table()
    self.assertEqual([None, 2], table.changes.values.shape.as_list())
    self.assertEqual([None, 2], table.changes.slots[0].shape.as_list())
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(table.write, {self._keys: [1, 2, 3], self._value: 1.0})
      cut = sess.run(table.cut)
      sess.run(table.write, {self._keys: [1002, 2], self._value: 5.0})
      sess.run(table.erase, {self._keys: [3, 9]})
      got = sess.run(table.changes, {self._since: cut})
      self.assertAllEqual([2, 1002], got.keys)
      self.assertAllEqual([[5, 5], [5, 5]], got.values)
      self.assertAllEqual([[-5, -5], [-5, -5]], got.slots[0])
      self.assertAllEqual([5, 5], got.versions)
      self.assertAllEqual([2, 1], got.frequencies)
      self.assertAllEqual([3], got.erased_keys)
      self.assertEqual(0, got.replaces)
      self.assertEqual((0, 2), got.default_rows.shape)
      self.assertAllEqual([0, 0, 0, 2], got.partition_offset[:4])
      self.assertAllEqual([], sess.run(table.changes.keys, {self._since: got.cut}))
      # A cut before recording started: exports everything, as a replacement.
      got = sess.run(table.changes, {self._since: 0})
      self.assertEqual(1, got.replaces)
      self.assertAllEqual([1, 2, 1002], got.keys)
      self.assertAllEqual(table.defaults, got.default_rows)

  def test_a_graph_without_tensor_types(self):
    # Graphs of earlier versions do not have this attribute.
    table = self._table()
    graph_def = tf.compat.v1.get_default_graph().as_graph_def()
    for node in graph_def.node:
      node.attr.pop("tensor_types", None)
    with tf.Graph().as_default():
      tf.import_graph_def(graph_def, name="")
      with testing.session() as sess:
        sess.run(table.init.name)
        sess.run(table.write.name, {self._keys.name: [1], self._value.name: 3.0})
        sess.run(table.cut.name)
        defaults, changed, exported = sess.run(
            [table.changes.default_rows.name, table.changes.slots[0].name,
             table.all.slots[0].name], {self._since.name: 0})
    self.assertAllEqual(table.defaults, defaults)
    self.assertAllEqual([[-3, -3]], changed)
    self.assertAllEqual([[-3, -3]], exported)

  def test_a_tensor_that_a_table_does_not_have(self):
    table = self._table()
    changes = delta_ops.export_changes(table.handle, self._since,
                                       tensor_types=[tf.float32] * 100)
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(table.cut)
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "does not fit"):
        sess.run(changes, {self._since: 0})

  def test_newer_rows(self):
    table = self._table()
    newer = delta_ops.export_newer(table.handle, self._since)
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(table.write, {self._keys: [1, 2], self._value: 3.0})
      sess.run(table.write, {self._keys: [2, 5], self._value: 7.0})
      got = sess.run(newer, {self._since: 4})
      self.assertAllEqual([2, 5], got.keys)
      self.assertAllEqual([[7, 7], [7, 7]], got.values)

  def test_errors_name_the_variable(self):
    table = self._table()
    with testing.session() as sess:
      sess.run(table.init)
      with self.assertRaisesRegex(tf.errors.FailedPreconditionError,
                                  "not recorded yet, table 'user'"):
        sess.run(table.changes, {self._since: 0})
      cut = sess.run(table.cut)
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  "cut 9 does not exist.*table 'user'"):
        sess.run(table.changes, {self._since: 9})
      sess.run(table.write, {self._keys: [1], self._value: 1.0})
      self.assertAllEqual([1], sess.run(table.changes.keys, {self._since: cut}))

  def _write(self, sess, prefix, tensors):
    names = sorted(tensors)
    sess.run(tf.raw_ops.SaveV2(
        prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names),
        tensors=[tf.constant(tensors[n]) for n in names]))

  def _delta(self, **other):
    tensors = {
        "user-sparse_incr_keys": np.array([2, 4], np.int64),
        "user-sparse_incr_values": np.array([[7, 7], [8, 8]], np.float32),
        "user/m-sparse_incr_values": np.array([[1, 2], [3, 4]], np.float32),
        "user-sparse_incr_erased_keys": np.array([1], np.int64),
        "user-sparse_incr_replaces": np.array([0], np.int64),
        "user-sparse_incr_default_rows": np.zeros([0, 2], np.float32),
        "user-sparse_incr_keys_filtered": np.zeros([0], np.int64),
        "user-sparse_incr_versions_filtered": np.zeros([0], np.int64),
        "user-sparse_incr_freqs_filtered": np.zeros([0], np.int64),
    }
    tensors.update(other)
    return tensors

  def test_applying(self):
    table = self._table()
    prefix = os.path.join(self.get_temp_dir(), "applying")
    apply_delta = delta_ops.apply_delta(table.handle, prefix, "user", ["m"], [0.5])
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(table.write, {self._keys: [1, 2, 3], self._value: 1.0})
      self._write(sess, prefix, self._delta())
      sess.run(apply_delta)
      got = sess.run(table.all)
      self.assertAllEqual([2, 3, 4], got.keys)
      self.assertAllEqual([[7, 7], [1, 1], [8, 8]], got.values)
      self.assertAllEqual([[1, 2], [-1, -1], [3, 4]], got.slots[0])

  def test_a_misfit_or_damage_changes_nothing(self):
    table = self._table()
    prefix = os.path.join(self.get_temp_dir(), "misfit")
    apply_delta = delta_ops.apply_delta(table.handle, prefix, "user", ["m"], [0.5])
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(table.write, {self._keys: [1, 2, 3], self._value: 1.0})
      before = sess.run(table.all)

      def fails(error, text):
        with self.assertRaisesRegex(error, text):
          sess.run(apply_delta)
        self.assertAllEqual(before.keys, sess.run(table.all.keys))
        self.assertAllEqual(before.values, sess.run(table.all.values))

      self._write(sess, prefix, self._delta(
          **{"user/m-sparse_incr_values": np.zeros([2, 3], np.float32)}))
      fails(tf.errors.InvalidArgumentError,
            "'user'.*user/m-sparse_incr_values.*embedding_dim is 2.*2,3")
      self._write(sess, prefix, {"item-sparse_incr_keys": np.zeros([0], np.int64)})
      fails(tf.errors.NotFoundError, "user-sparse_incr_keys")
      self._write(sess, prefix, self._delta())
      data = prefix + ".data-00000-of-00001"
      with open(data, "r+b") as f:
        contents = bytearray(f.read())
        contents[len(contents) // 2] ^= 4
        f.seek(0)
        f.write(contents)
      fails(tf.errors.DataLossError, "checksum")

  def _delta_of_ranks(self, prefix, sess, placement, parts):
    """Writes a delta of a table that was spread over ranks.

    Args:
      parts: for each rank (erased keys, key -> value, replaces, default rows).
    """
    tensors = {}
    if placement is not None:
      tensors["user-sparse_incr_placement"] = np.array(placement, np.int64)
    for i, (erased, rows, replaces, defaults) in enumerate(parts):
      keys, n = sorted(rows), len(rows)
      values = np.array([[rows[k]] * 2 for k in keys], np.float32).reshape([n, 2])
      part = self._delta(**{
          "user-sparse_incr_keys": np.array(keys, np.int64),
          "user-sparse_incr_values": values,
          "user-sparse_incr_versions": np.array([9] * n, np.int64),
          "user-sparse_incr_freqs": np.array(keys, np.int64),
          "user/m-sparse_incr_values": -values,
          "user-sparse_incr_erased_keys": np.array(erased, np.int64),
          "user-sparse_incr_replaces": np.array([replaces], np.int64),
          "user-sparse_incr_default_rows": np.array(defaults, np.float32).reshape([-1, 2]),
      })
      tensors.update((k.replace("user", "user/part_%d" % i, 1), v)
                     for k, v in part.items())
    self._write(sess, prefix, tensors)

  def _check_rows(self, sess, table, expected):
    got = sess.run(table.all)
    self.assertEqual(expected, {k: v[0] for k, v in zip(got.keys.tolist(),
                                                        got.values.tolist())})
    return got

  def test_a_delta_of_ranks_goes_where_its_keys_belong(self):
    table = self._table()
    prefix = os.path.join(self.get_temp_dir(), "ranks")
    # This rank has the even keys; they came from three ranks, of which the second held
    # no rows.
    apply_delta = delta_ops.apply_delta(table.handle, prefix, "user", ["m"], [0.5],
                                        placement=[1, 0], rank=1)
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(table.write, {self._keys: [-2, 0, 4, 6, 10], self._value: 1.0})
      # Rank 0 holds the keys with floormod(key, 3) == 2, rank 2 the others.
      self._delta_of_ranks(prefix, sess, [2, 2, 0], [
          ([-4, 5], {8: 5., 11: 6., -2: 3.}, 0, []),
          ([], {}, 0, []),
          # A row of key -7 in rank 2's part, and key 8, which belongs to rank 0.
          ([0, 3, 10], {4: 7., -7: 8., 8: 99.}, 0, []),
      ])
      sess.run(apply_delta)
      # -2 belongs to rank 2, since floormod(-2, 3) == 1, so rank 0's row is ignored.
      got = self._check_rows(sess, table, {-2: 1., 4: 7., 6: 1., 8: 5.})
      by_key = dict(zip(got.keys.tolist(), zip(got.versions, got.frequencies,
                                               got.slots[0][:, 0])))
      self.assertEqual((9, 4, -7.), by_key[4])
      self.assertEqual((9, 8, -5.), by_key[8])
      self.assertEqual((1, 1, -1.), by_key[6])

  def test_a_rank_whose_table_was_emptied(self):
    table = self._table()
    prefix = os.path.join(self.get_temp_dir(), "emptied")
    apply_delta = delta_ops.apply_delta(table.handle, prefix, "user", ["m"], [0.5],
                                        placement=[0, 1], rank=0)
    alone = delta_ops.apply_delta(table.handle, prefix, "user", ["m"], [0.5])
    defaults = checkpoint_ops.default_rows(table.handle)
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(table.write, {self._keys: [0, 2, 4, 6, -2], self._value: 1.0})
      some = [([], {3: 2.}, 0, []), ([], {4: 5., 7: 5.}, 1, [4., 4.]), ([], {}, 0, [])]
      self._delta_of_ranks(prefix, sess, [0, 1, 2], some)
      sess.run(apply_delta)
      # Rank 1 of three had -2 and 4, and now has 4 and 7.
      self._check_rows(sess, table, {0: 1., 2: 1., 4: 5., 6: 1.})
      self.assertAllEqual(table.defaults, sess.run(defaults))
      # In parts of a partitioned variable they have other keys: 4.
      self._delta_of_ranks(prefix, sess, None, [([], {}, 0, []), ([], {}, 1, [4., 4.]),
                                                ([], {}, 0, [])])
      sess.run(alone)
      self._check_rows(sess, table, {0: 1., 2: 1., 6: 1.})
      # All parts replace: new keys start with this rank's default rows.
      self._delta_of_ranks(prefix, sess, [0, 1, 2],
                           [([], {6 + i: 3.}, 1, [7. + i] * 2) for i in (0, 1, 2)])
      sess.run(apply_delta)
      self._check_rows(sess, table, {6: 3., 8: 3.})
      self.assertAllEqual([[7, 7]], sess.run(defaults))

  def test_a_placement_on_missing_ranks(self):
    table = self._table()
    prefix = os.path.join(self.get_temp_dir(), "missing_ranks")
    apply_delta = delta_ops.apply_delta(table.handle, prefix, "user", ["m"], [0.5])
    with testing.session() as sess:
      sess.run(table.init)
      self._delta_of_ranks(prefix, sess, [0, 2], [([], {}, 0, [])] * 2)
      with self.assertRaisesRegex(
          tf.errors.InvalidArgumentError,
          r"'user'.*user-sparse_incr_placement.*entries in \[0, 2\), got 2"):
        sess.run(apply_delta)

  def test_publishing(self):
    directory = os.path.join(self.get_temp_dir(), "publishing")
    os.mkdir(directory)
    staged = os.path.join(directory, "model.partial")
    prefix = os.path.join(directory, "model")
    publish = delta_ops.publish_checkpoint(staged, prefix)
    with testing.session() as sess:
      # Publishes a new checkpoint, then over an existing one, then over an interrupted
      # one.
      for value in (1, 2, 3):
        self._write(sess, staged, {"x": np.array([value])})
        sess.run(publish)
        self.assertEqual([value], tf.train.load_checkpoint(prefix).get_tensor("x"))
        self.assertCountEqual(["model.index", "model.data-00000-of-00001"],
                              os.listdir(directory))
        if value == 2:
          for suffix in (".data-00000-of-00001", ".index"):
            os.rename(prefix + suffix, prefix + ".commit" + suffix)
      with self.assertRaisesOpError("cannot open"):
        sess.run(publish)  # nothing is staged
      self.assertEqual([3], tf.train.load_checkpoint(prefix).get_tensor("x"))


if __name__ == "__main__":
  absltest.main()

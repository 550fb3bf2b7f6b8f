# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Restoring a damaged checkpoint names file and variable, or restores everything."""

import os
import shutil

from absl.testing import absltest
import tensorflow as tf

from embedding_variable.tools import testing
import golden


class DamageTest(absltest.TestCase):

  def setUp(self):
    super(DamageTest, self).setUp()
    self._folder = self.create_tempdir().full_path
    self._whole = os.path.join(self._folder, "whole")
    golden.make_ours(self._whole)
    self._path = os.path.join(self._folder, "model.ckpt")
    self._index = self._path + ".index"
    self._suffixes = sorted(
        f[len("whole"):] for f in os.listdir(self._folder) if f.startswith("whole."))
    self._datas = [self._path + s for s in self._suffixes if s.startswith(".data-")]
    self._data = self._datas[0]  # keys and everything that is not a row
    graph = tf.Graph()
    with graph.as_default():
      table, = golden.tables(golden.variable())
      self._export = table.export()
      self._lookup = tf.nn.embedding_lookup(table, [1, 2])
      self._saver = tf.train.Saver([table])
    self._session = tf.Session(graph=graph)
    self.addCleanup(self._session.close)
    self._saver.restore(self._session, self._whole)
    self._expected = self._contents()
    self._mend()

  def _contents(self):
    return [c.tolist() for c in self._session.run(self._export)]

  def _mend(self):
    for suffix in self._suffixes:
      shutil.copyfile(self._whole + suffix, self._path + suffix)

  def _is_noticed(self, damaged):
    """Returns whether restoring fails. If it does not, the whole table must be intact."""
    try:
      self._saver.restore(self._session, self._path)
    except (tf.errors.OpError, ValueError) as e:
      self.assertIn(damaged, str(e))
      if not isinstance(e, ValueError):  # stock code does not find the checkpoint
        self.assertIn("embedding variable 'v': ", str(e))
        # Ops treat the table as uninitialized.
        with self.assertRaisesRegex(tf.errors.FailedPreconditionError,
                                    "'v'.* is not initialized"):
          self._session.run(self._lookup)
      return True
    self.assertEqual(self._contents(), self._expected)
    return False

  def _flip_all(self, path, stride):
    """Flips a bit of every byte; returns the share of detected flips."""
    with open(path, "rb") as f:
      whole = f.read()
    noticed, tried = 0, 0
    for place in range(0, len(whole), stride):
      with open(path, "r+b") as f:
        f.seek(place)
        f.write(bytes([whole[place] ^ (1 << place % 8)]))
      noticed += self._is_noticed(path)
      tried += 1
      with open(path, "r+b") as f:
        f.seek(place)
        f.write(whole[place:place + 1])
    return noticed / tried

  def test_flipped_bits_of_the_index(self):
    self.assertGreater(self._flip_all(self._index, 3), .8)

  def test_flipped_bits_of_the_data(self):
    # Most of this file are bucket offsets, which only other readers use.
    self.assertGreater(self._flip_all(self._data, 11), .02)
    # In the other files each bit belongs to a row, its version or its frequency.
    self.assertLen(self._datas, 1 + 1 + len(golden.SLOTS) + 2)
    for path in self._datas[1:]:
      self.assertEqual(self._flip_all(path, 11), 1)
    self._mend()
    # The first key, the second key, the end of the last key.
    with open(self._data, "rb") as f:
      keys = f.read().index(golden.KEYS[5:6].tobytes() + golden.KEYS[9:10].tobytes())
    for place in (keys - 8, keys, keys + 8 * len(golden.KEYS) - 9):
      with open(self._data, "r+b") as f:
        f.seek(place)
        byte = f.read(1)[0]
        f.seek(place)
        f.write(bytes([byte ^ 4]))
      self.assertTrue(self._is_noticed(self._data))
      self._mend()

  def test_truncated_files(self):
    for path in [self._index] + self._datas:
      size = os.path.getsize(path)
      for length in (0, 1, 20, size // 2, size - 50, size - 1):
        os.truncate(path, length)
        self.assertTrue(self._is_noticed(path), (path, length))
        self._mend()

  def test_index_with_too_large_shapes(self):
    tensors = testing.read(self._whole)
    data = self._path + ".data-00000-of-00001"
    for name in ("v-default_rows", "v-values", "v-versions", "v-keys_filtered"):
      shape = [2**45] + list(tensors[name].shape[1:])
      claims = {name: shape}
      if name in ("v-values", "v-versions"):
        claims["v-keys"] = [2**45]
      testing.write_claiming(self._path, tensors, claims)
      self.assertTrue(self._is_noticed(data), name)
    testing.write_claiming(self._path, tensors, {})
    self.assertFalse(self._is_noticed(data))

  def test_missing_files(self):
    for data in self._datas:
      os.remove(data)
      self.assertTrue(self._is_noticed(data))
      self._mend()
    os.remove(self._index)
    self.assertTrue(self._is_noticed(self._path))

  def test_restore_after_a_failed_restore(self):
    os.truncate(self._data, 100)
    self.assertTrue(self._is_noticed(self._data))
    self._mend()
    self.assertFalse(self._is_noticed(self._data))


if __name__ == "__main__":
  absltest.main()

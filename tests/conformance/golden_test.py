# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of earlier versions can still be loaded."""

import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import golden

# Checkpoints with one data file, as versions wrote them that did not split columns.
_IN_ONE_FILE = ("ours_in_one_file", "partitioned_in_one_file")
_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")


def _path(name):
  return os.path.join(_FOLDER, name, "model.ckpt")


class GoldenTest(parameterized.TestCase):

  @parameterized.product(name=tuple(golden.MAKERS) + _IN_ONE_FILE, parts=(None, 1, 2, 3, 7))
  def test_loads(self, name, parts):
    path = os.path.join(self.create_tempdir().full_path, "again")
    with tf.Graph().as_default(), tf.Session() as session:
      tables = golden.tables(golden.variable(parts))
      saver = tf.train.Saver(tables)
      frequencies = tf.add_n([t.get_frequency(golden.FILTERED_KEYS) for t in tables])
      new = tf.nn.embedding_lookup(tables, [4242])
      saver.restore(session, _path(name))
      found = {}
      for keys, values, versions, counts in session.run([t.export() for t in tables]):
        for row in zip(keys.tolist(), values.tolist(), versions, counts):
          found[row[0]] = row[1:]
      self.assertEqual(found, {
          k: (v, s, c) for k, v, s, c in zip(
              golden.KEYS.tolist(), golden.VALUES.tolist(), golden.VERSIONS,
              golden.FREQUENCIES)
      })
      np.testing.assert_array_equal(session.run(frequencies),
                                    golden.FILTERED_FREQUENCIES)
      # Key 4242 is not admitted.
      self.assertFalse(session.run(new).any())
      saver.save(session, path)
    reader = tf.train.load_checkpoint(path)
    for slot, expected in zip(golden.SLOTS, golden.SLOT_VALUES):
      found = {}
      for i in range(len(tables)):
        part = "v" if len(tables) == 1 and parts is None else "v/part_%d" % i
        found.update(zip(reader.get_tensor("%s/%s-keys" % (part, slot)).tolist(),
                         reader.get_tensor("%s/%s-values" % (part, slot)).tolist()))
      expected = dict(zip(golden.KEYS.tolist(), expected.tolist()))
      if name == "deeprec" and slot == "Adam_1":
        expected[5] = [0.] * golden.DIM
      self.assertEqual(found, expected)

  @parameterized.parameters("ours", "partitioned")
  def test_the_format_is_still_the_same(self, name):
    folder = self.create_tempdir().full_path
    golden.MAKERS[name](os.path.join(folder, "model.ckpt"))
    names = os.listdir(os.path.join(_FOLDER, name))
    self.assertCountEqual(os.listdir(folder), names)
    for file_name in names:
      with open(os.path.join(folder, file_name), "rb") as a, \
          open(os.path.join(_FOLDER, name, file_name), "rb") as b:
        self.assertEqual(a.read(), b.read(), file_name)


if __name__ == "__main__":
  absltest.main()

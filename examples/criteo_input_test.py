# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0

import os
import tempfile

from absl.testing import absltest
import numpy as np
import tensorflow as tf

import criteo_input


def _line(label, numeric, categories):
  return "\t".join([str(label)] + numeric + categories) + "\n"


_NUMERIC = ["%d" % i for i in range(13)]
_CATEGORIES = ["%08x" % i for i in range(26)]


class CriteoInputTest(absltest.TestCase):

  def _read(self, lines, batch_size=2, **kwargs):
    path = os.path.join(tempfile.mkdtemp(), "data.txt")
    with open(path, "w") as f:
      f.writelines(lines)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      data = criteo_input.dataset(path, batch_size, **kwargs)
      batch = criteo_input.unpack(
          tf.compat.v1.data.make_one_shot_iterator(data).get_next())
      batches = []
      while len(batches) < 10:
        try:
          batches.append(session.run(batch))
        except tf.errors.OutOfRangeError:
          break
      return batches

  def test_fields(self):
    lines = [
        _line(1, _NUMERIC, _CATEGORIES),
        _line(0, ["-2", ""] + _NUMERIC[2:], [""] + _CATEGORIES[1:]),
    ]
    batch, = self._read(lines)
    np.testing.assert_array_equal(batch.label, [1.0, 0.0])
    self.assertEqual(batch.numeric.shape, (2, 13))
    np.testing.assert_allclose(batch.numeric[0], np.log1p(np.arange(13)), rtol=1e-6)
    # Negative and missing integers count as zero.
    np.testing.assert_array_equal(batch.numeric[1, :2], [0, 0])
    self.assertLen(batch.ids, 26)
    ids = np.stack(batch.ids)
    self.assertEqual(ids.dtype, np.int64)
    # Equal texts have equal ids; an empty text has an id of its own.
    np.testing.assert_array_equal(ids[1:, 0], ids[1:, 1])
    self.assertNotEqual(ids[0, 0], ids[0, 1])
    self.assertLen(set(ids[:, 0].tolist()), 26)

  def test_last_batch_skip_take_and_repeat(self):
    lines = [_line(i % 2, ["%d" % i] * 13, _CATEGORIES) for i in range(5)]
    sizes = lambda batches: [len(b.label) for b in batches]
    self.assertEqual(sizes(self._read(lines)), [2, 2, 1])
    self.assertEqual(sizes(self._read(lines, skip=1)), [2, 2])
    self.assertEqual(sizes(self._read(lines, take=3)), [2, 1])
    self.assertLen(self._read(lines, repeat=True), 10)
    first = self._read(lines, skip=3)[0]
    np.testing.assert_allclose(first.numeric[:, 0], np.log1p([3, 4]), rtol=1e-6)

  def test_empty_lines_are_skipped(self):
    lines = [_line(1, ["%d" % i] * 13, _CATEGORIES) for i in range(4)]
    for given in (lines + ["\n"], lines + ["\r\n", "\n", "\n"],
                  lines[:1] + ["\n"] + lines[1:]):
      batches = self._read(given)
      np.testing.assert_allclose(np.concatenate([b.numeric[:, 0] for b in batches]),
                                 np.log1p(range(4)), rtol=1e-6)
      self.assertNotIn(0, [len(b.label) for b in batches])

  def test_a_byte_0_makes_another_category(self):
    batch, = self._read([_line(1, _NUMERIC, ["12", "1\0002", "12\0"] + _CATEGORIES[3:])])
    self.assertLen(set(ids[0] for ids in batch.ids[:3]), 3)

  def test_wrong_number_of_fields(self):
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                "does not have 40 tab-separated fields"):
      self._read([_line(1, _NUMERIC, _CATEGORIES), "1\t2\n"])


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of ops that make string tensors."""

from absl.testing import absltest
import numpy as np
import tensorflow as tf

from embedding_variable.ops import string_ops


class SplitBytesTest(tf.test.TestCase):

  def _split(self, data, offsets):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      return session.run(string_ops.split_bytes(
          np.frombuffer(data, np.uint8), np.array(offsets, np.int32))).tolist()

  def test_strings(self):
    long = b"x" * 100
    self.assertEqual(self._split(b"ab\0" + long, [0, 0, 2, 3, 103, 103]),
                     [b"", b"ab", b"\0", long, b""])

  def test_offsets_of_a_slice(self):
    # The bytes begin at the first offset.
    self.assertEqual(self._split(b"abc", [7, 8, 10]), [b"a", b"bc"])
    self.assertEqual(self._split(b"", [7]), [])

  def test_shape(self):
    with tf.Graph().as_default():
      placeholder = tf.compat.v1.placeholder
      strings = string_ops.split_bytes(placeholder(tf.uint8, [None]),
                                       placeholder(tf.int32, [5]))
      self.assertEqual(strings.shape.as_list(), [4])

  def test_wrong_offsets(self):
    for offsets, message in (([0, 2, 1], "must not decrease, got 2 and 1"),
                             ([3, 6, 7], "end at byte 4 of 3"), ([], "got none")):
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, message):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
          fed = tf.compat.v1.placeholder(tf.int32, [None])
          session.run(string_ops.split_bytes(np.zeros(3, np.uint8), fed),
                      {fed: offsets})


if __name__ == "__main__":
  absltest.main()

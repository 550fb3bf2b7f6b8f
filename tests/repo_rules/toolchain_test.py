# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Settings that every Python test relies on."""

import sys

from absl.testing import absltest
import tensorflow as tf


class ToolchainTest(absltest.TestCase):

  def test_interpreter_is_python_3_7(self):
    self.assertEqual(sys.version_info[:2], (3, 7))

  def test_tensorflow_is_1_15(self):
    self.assertEqual(tf.__version__.split(".")[:2], ["1", "15"])

  def test_a_graph_runs(self):
    with tf.Graph().as_default(), tf.Session() as sess:
      self.assertEqual(sess.run(tf.constant(2.0) * 3.0), 6.0)


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs gpu_test with the engine's test device, which every machine has."""

import os

from absl.testing import absltest
import tensorflow as tf

_HERE = os.path.dirname(os.path.abspath(__file__))
_load_op_library = tf.load_op_library


def _load_with_test_device(path):
  return _load_op_library(os.path.join(
      os.path.dirname(_HERE), "conformance", "host_device", os.path.basename(path)))


# Replaced before the package loads its library, under both names that it may have.
tf.load_op_library = _load_with_test_device
tf.compat.v1.load_op_library = _load_with_test_device

import gpu_test  # pylint: disable=wrong-import-position


class GpuTest(gpu_test.GpuTest):

  def test_nothing_is_skipped(self):
    self.assertIsNone(gpu_test.why_no_gpu())


if __name__ == "__main__":
  absltest.main()

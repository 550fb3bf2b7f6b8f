# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs `gpu_test` with the engine's test device, which every machine has.

It tests TensorFlow's side of rows on a device; CUDA kernels are not tested.
"""

import os

from absl.testing import absltest
import tensorflow as tf

_HERE = os.path.dirname(os.path.abspath(__file__))
_load_op_library = tf.load_op_library


def _load_with_test_device(path):
  return _load_op_library(os.path.join(_HERE, os.path.basename(path)))


# Replaced before the package loads its library.
tf.load_op_library = _load_with_test_device

import gpu_test  # pylint: disable=wrong-import-position


class GpuStorageTest(gpu_test.GpuStorageTest):

  def test_nothing_is_skipped(self):
    self.assertIsNone(gpu_test._why_no_gpu())


class UpdateBySamplesTest(gpu_test.UpdateBySamplesTest):
  pass


class PartsTest(gpu_test.PartsTest):
  pass


if __name__ == "__main__":
  absltest.main()

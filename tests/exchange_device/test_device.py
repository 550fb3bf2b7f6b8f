# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the package load the library with stand-ins for GPU and NCCL.

Import it before the package. As a program it runs another one with them:

  test_device.py PROGRAM [ARGUMENT]...
"""

import os
import runpy
import sys

import tensorflow as tf

_HERE = os.path.dirname(os.path.abspath(__file__))
_load_op_library = tf.load_op_library


def _load_with_test_device(path):
  return _load_op_library(os.path.join(_HERE, os.path.basename(path)))


# Once, also when a program and what it imports are the same file.
if tf.load_op_library.__name__ != _load_with_test_device.__name__:
  tf.load_op_library = _load_with_test_device

if __name__ == "__main__":
  sys.argv = sys.argv[1:]
  sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
  runpy.run_path(sys.argv[0], run_name="__main__")

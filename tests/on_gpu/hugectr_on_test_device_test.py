# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs hugectr's session_test with the engine's test device as TensorFlow's GPU.

Sessions place their tables on a GPU if there is one, so session_test runs unchanged. On a
machine with a GPU and TensorFlow's GPU build, run session_test.py itself.
"""

import os
import runpy
import sys

import tensorflow as tf

import placement

_LIBRARY = "tests/conformance/gpu_device/libembedding_variable.so"
_PROGRAM = "addons/hugectr/python/hugectr/session_test.py"


def main():
  placement.use_library(os.path.abspath(_LIBRARY))
  tf.load_op_library(_LIBRARY)
  with tf.compat.v1.Session() as session:
    if not any(d.device_type == "GPU" for d in session.list_devices()):
      sys.exit("the test device is missing: nothing would be tested on it")
  runpy.run_path(_PROGRAM, run_name="__main__")


if __name__ == "__main__":
  main()

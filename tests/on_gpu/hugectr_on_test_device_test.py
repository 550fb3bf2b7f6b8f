# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""hugectr's sessions where TensorFlow has a GPU: here the engine's test device.

A session then places its tables there by itself, so this is session_test as it is. On a
machine with a card and TensorFlow's GPU build, run session_test.py.
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
      sys.exit("the test device is not there: nothing would be shown about it")
  runpy.run_path(_PROGRAM, run_name="__main__")


if __name__ == "__main__":
  main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the package load another library instead of its own."""

import os
import runpy
import sys

import tensorflow as tf


def use(folder):
  """Makes the package load the library in `folder`; only the first call has an effect."""
  stock = tf.load_op_library
  if getattr(stock, "is_stand_in", False):
    return

  def load(path):
    return stock(os.path.join(folder, os.path.basename(path)))

  load.is_stand_in = True
  # The package takes it from tf.compat.v1, where TensorFlow 2.x has another attribute.
  tf.load_op_library = tf.compat.v1.load_op_library = load


def run():
  """Runs the program that the rest of the command line names."""
  sys.argv = sys.argv[1:]
  sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
  runpy.run_path(sys.argv[0], run_name="__main__")

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Opens checkpoints in TensorFlow's V2 format."""

import os

import tensorflow as tf


def open_bundle(prefix):
  """Returns TensorFlow's reader of a checkpoint, full or incremental.

  Args:
    prefix: string.

  Raises:
    ValueError: a save that replaces it was interrupted, or a tensor is larger than all
      data files (reading it would crash TensorFlow).
    tf.errors.OpError: it cannot be read.
  """
  if tf.io.gfile.exists(prefix + ".commit.index"):
    raise ValueError("a save that replaces it was interrupted (%s.commit.index is there); "
                     "tf.train.Saver.restore on the training side finishes it" % prefix)
  reader = tf.train.load_checkpoint(prefix)
  folder, start = os.path.split(prefix + ".data-")
  stored = sum(tf.io.gfile.stat(os.path.join(folder, name)).length
               for name in tf.io.gfile.listdir(folder or ".") if name.startswith(start))
  types = reader.get_variable_to_dtype_map()
  for name, shape in sorted(reader.get_variable_to_shape_map().items()):
    # A string takes at least one byte, for its length.
    needed = 1 if types[name] == tf.string else types[name].size
    for size in shape:
      needed *= size
    if needed > stored:
      raise ValueError("tensor %s of shape %s needs %d bytes, and the data files have %d" %
                       (name, shape, needed, stored))
  return reader

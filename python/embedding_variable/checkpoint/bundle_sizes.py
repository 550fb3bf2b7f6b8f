# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks that a checkpoint's files are as large as its index requires.

TensorFlow's reader allocates memory for a tensor's shape before it checks the tensor's
size, and crashes the process if the allocation fails. So a manipulated index could
crash every program that opens the checkpoint.
"""

import os

from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import errors
from embedding_variable.tf_names import file_io


def check(prefix, reader):
  """Compares sizes only; reads no tensor.

  Args:
    prefix: string, of a V2 checkpoint.
    reader: TensorFlow's checkpoint reader of it.

  Raises:
    tf.errors.DataLossError: a tensor's shape needs more bytes than all data files have;
      the message names the tensor and both numbers.
  """
  directory, name = os.path.split(prefix)
  stored = sum(
      file_io.stat(os.path.join(directory, f)).length
      for f in file_io.list_directory(directory or ".")
      if f.startswith(name + ".data-"))
  types = reader.get_variable_to_dtype_map()
  for tensor, shape in sorted(reader.get_variable_to_shape_map().items()):
    # A string takes at least one byte, for its length.
    needed = 1 if types[tensor] == dtypes.string else types[tensor].size
    for size in shape:
      needed *= size
    if needed > stored:
      raise errors.DataLossError(
          None, None, "%s: tensor %s of type %s and shape %s needs %d bytes, and the data "
          "files have %d" % (prefix, tensor, types[tensor].name, shape, needed, stored))

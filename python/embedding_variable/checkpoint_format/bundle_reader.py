# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the tensors of a stock V2 checkpoint, full or incremental."""

import os
import re

import numpy as np
import tensorflow as tf

from . import errors
from . import packed_rows
from . import tensor_names

_LINE = re.compile(r"(.*) \((DT_\w+)\) \[([\d,]*)\]")
_TYPES = tf.compat.v1.AttrValue.DESCRIPTOR.fields_by_name["type"].enum_type.values_by_name


def maps(reader):
  """Returns what a checkpoint holds: ({name: shape, a list of ints}, {name: tf.DType}).

  TensorFlow 1.15 never frees the reader's own maps, so a process that follows a
  publication for weeks would grow. Its text lacks partitioned variables of stock
  TensorFlow; a checkpoint with one is read by the maps.

  Args:
    reader: TensorFlow's checkpoint reader.
  """
  text = tf.compat.as_bytes(reader.debug_string())
  # The name of a partition begins with a zero.
  if b"\0" not in text:
    lines = [_LINE.fullmatch(line) for line in
             text.decode("utf-8", "surrogateescape").split("\n")[:-1]]
    if all(line and line.group(2) in _TYPES for line in lines):
      shapes = {line.group(1): [int(n) for n in line.group(3).split(",") if n]
                for line in lines}
      if len(shapes) == len(lines):
        return shapes, {line.group(1): tf.as_dtype(_TYPES[line.group(2)].number)
                        for line in lines}
  return reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()


def open_bundle(prefix):
  """Returns TensorFlow's reader of a checkpoint, after a check of its files' sizes.

  Raises:
    tf.errors.OpError, ValueError: it cannot be read.
  """
  reader = tf.compat.v1.train.NewCheckpointReader(prefix)
  _check_sizes(prefix, reader)
  return reader


def _check_sizes(prefix, reader):
  """Checks that the files are as large as the index requires; reads no tensor.

  TensorFlow's reader allocates memory for a tensor's shape before it checks the tensor's
  size, and crashes the process if the allocation fails. So a manipulated index could
  crash every program that opens the checkpoint.

  Args:
    prefix: string, of a V2 checkpoint.
    reader: TensorFlow's checkpoint reader of it.

  Raises:
    tf.errors.DataLossError: a tensor's shape needs more bytes than all data files have;
      the message names the tensor and both numbers.
  """
  directory, name = os.path.split(prefix)
  stored = sum(
      tf.io.gfile.stat(os.path.join(directory, f)).length
      for f in tf.io.gfile.listdir(directory or ".")
      if f.startswith(name + ".data-"))
  shapes, types = maps(reader)
  for tensor, shape in sorted(shapes.items()):
    # A string takes at least one byte, for its length.
    needed = 1 if types[tensor] == tf.string else types[tensor].size
    for size in shape:
      needed *= size
    if needed > stored:
      raise tf.errors.DataLossError(
          None, None, "%s: tensor %s of type %s and shape %s needs %d bytes, and the data "
          "files have %d" % (prefix, tensor, types[tensor].name, shape, needed, stored))


class BundleReader(object):
  """The tensors of one checkpoint. Rows in fewer bytes are those of float32 here.

  Attributes:
    prefix: string, its name in messages.
    shapes: dict: tensor name -> list of ints.
  """

  def __init__(self, prefix, readable):
    """Opens a checkpoint.

    Args:
      prefix: string, the checkpoint's prefix.
      readable: string, the prefix to read it under (`durable.readable`).

    Raises:
      CheckpointError: it cannot be read.
    """
    self.prefix = prefix
    try:
      self._reader = open_bundle(readable)
    except (tf.errors.OpError, ValueError) as e:
      raise errors.CheckpointError("%s cannot be read: %s" % (prefix, getattr(e, "message", e)))
    self._stored_shapes, self._dtypes = maps(self._reader)
    self._row_types = {
        tensor: self._dtypes[tensor].name for tensor in self._dtypes if self._is_packed(tensor)}
    self.shapes = dict(self._stored_shapes)
    for tensor, row_type in self._row_types.items():
      n, width = self.shapes[tensor]
      self.shapes[tensor] = [n, width - packed_rows.END_BYTES[row_type]]

  def _is_packed(self, tensor):
    """Returns whether a tensor has rows of a table that are not float32."""
    dtype, shape = self._dtypes[tensor].name, self._stored_shapes[tensor]
    if dtype not in packed_rows.END_BYTES or len(shape) != 2 or (
        shape[1] <= packed_rows.END_BYTES[dtype]):
      return False
    # TensorFlow's mutable hash tables have keys and values too.
    for values, offsets in ((tensor_names.VALUES, tensor_names.OFFSETS),
                            (tensor_names.DELTA_VALUES, tensor_names.DELTA_OFFSETS)):
      table = tensor_names.without_column(tensor, values)
      if table is not None and tensor_names.tensor(table, offsets) in self._dtypes:
        return True
    return False

  def dtype(self, tensor):
    """Returns NumPy's dtype of a tensor."""
    if tensor in self._row_types:
      return np.dtype(np.float32)
    return np.dtype(self._dtypes[tensor].as_numpy_dtype)

  def nbytes(self, tensor):
    """Returns the stored bytes of a tensor (0 for strings, whose length is not listed)."""
    dtype = self._dtypes[tensor].as_numpy_dtype
    if np.dtype(dtype) == object:
      return 0
    return int(np.prod(self._stored_shapes[tensor], dtype=np.int64)) * np.dtype(dtype).itemsize

  def read(self, tensor):
    """Reads a tensor as a NumPy array.

    Raises:
      CheckpointError: the file is damaged; the message names the tensor.
    """
    try:
      stored = self._reader.get_tensor(tensor)
    except tf.errors.OpError as e:
      raise errors.CheckpointError("%s: tensor '%s' cannot be read: %s" %
                                   (self.prefix, tensor, e.message))
    row_type = self._row_types.get(tensor)
    if row_type is None:
      return stored
    stored = stored.view(np.uint8).reshape([len(stored), -1])
    return packed_rows.unpack(stored, row_type, self.shapes[tensor][1])

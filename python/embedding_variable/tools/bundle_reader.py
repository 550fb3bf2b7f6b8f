# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the tensors of a stock V2 checkpoint, full or incremental."""

import numpy as np

from embedding_variable.checkpoint import bundle_sizes
from embedding_variable.tf_names import checkpoint_utils
from embedding_variable.tf_names import errors as tf_errors
from embedding_variable.tools import errors


class BundleReader(object):
  """The tensors of one checkpoint.

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
      ToolError: it cannot be read.
    """
    self.prefix = prefix
    try:
      self._reader = checkpoint_utils.load_checkpoint(readable)
      bundle_sizes.check(readable, self._reader)
    except (tf_errors.OpError, ValueError) as e:
      raise errors.ToolError("%s cannot be read: %s" % (prefix, getattr(e, "message", e)))
    self.shapes = self._reader.get_variable_to_shape_map()
    self._dtypes = self._reader.get_variable_to_dtype_map()

  def dtype(self, tensor):
    """Returns NumPy's dtype of a tensor."""
    return np.dtype(self._dtypes[tensor].as_numpy_dtype)

  def nbytes(self, tensor):
    """Returns the bytes of a tensor (0 for strings, whose length is not listed)."""
    dtype = self.dtype(tensor)
    if dtype == object:
      return 0
    return int(np.prod(self.shapes[tensor], dtype=np.int64)) * dtype.itemsize

  def read(self, tensor):
    """Reads a tensor as a NumPy array.

    Raises:
      ToolError: the file is damaged; the message names the tensor.
    """
    try:
      return self._reader.get_tensor(tensor)
    except tf_errors.OpError as e:
      raise errors.ToolError("%s: tensor '%s' cannot be read: %s" %
                             (self.prefix, tensor, e.message))

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Initializers that return constants, most of which make all rows equal."""

import numpy as np

from embedding_variable.tf_names import init_ops
from embedding_variable.tf_names import init_ops_v2

_ZEROS_OR_ONES = (init_ops.Zeros, init_ops.Ones, init_ops_v2.Zeros, init_ops_v2.Ones)
_CONSTANTS = (init_ops.Constant, init_ops_v2.Constant)


def size(initializer):
  """Returns how many numbers a constant initializer has, or None for other ones.

  Args:
    initializer: anything; 1 is returned for zeros and ones.
  """
  if isinstance(initializer, _ZEROS_OR_ONES):
    return 1
  return np.size(initializer.value) if isinstance(initializer, _CONSTANTS) else None


def num_default_rows(initializer, most, dim):
  """Returns how many default rows to make from an initializer.

  Args:
    initializer: anything.
    most: int, the number of rows if they differ.
    dim: int, length of a row.

  Returns:
    1 for a constant that is a number or a row, `most` for other initializers. With a
      constant of another size the initializer raises an error, also with 1.
  """
  return most if size(initializer) in (None, most * dim) else 1

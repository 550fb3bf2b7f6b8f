# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts how often the keys of a gradient occurred in the batch.

A fused lookup's gradient contains each key once, however often it is in the batch. The
lookup's plan has the counts. If a variable is looked up several times, stock code
concatenates the gradients, and this module concatenates the counts in the same way.
"""

from embedding_variable.eager import taped
from embedding_variable.ops import gather_ops
from embedding_variable.ops import lookup_sparse_ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import ops


def of(slices):
  """Returns int64 `[M]`, the occurrences of each of the M indices of a gradient.

  None if each index stands for one occurrence (or the counts are unknown).

  Args:
    slices: IndexedSlices.
  """
  return _of_indices(slices.indices)


def _of_indices(indices):
  given = gather_ops.counts_of(indices)
  eager = taped.is_eager(indices)
  while given is None and not eager and indices.op.type in ("Identity", "Cast"):
    indices = indices.op.inputs[0]
    given = gather_ops.counts_of(indices)
  if given is not None:
    return given
  found = lookup_sparse_ops.plan_of(ops.IndexedSlices(indices, indices))
  if found is not None:
    return lookup_sparse_ops.plan_counts(*found)
  if eager or indices.op.type != "ConcatV2":
    return None
  pieces = list(indices.op.inputs)[:-1]
  counts = [_of_indices(piece) for piece in pieces]
  if all(count is None for count in counts):
    return None
  return array_ops.concat([
      array_ops.ones_like(piece, dtypes.int64) if count is None else count
      for piece, count in zip(pieces, counts)
  ], 0)

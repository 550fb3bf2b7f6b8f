# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pools with stock ops the rows that the fused lookup cannot read.

These are rows that are clipped one by one, composed from several tables, or rows of a
dense variable that follow this package's rules.
"""

from embedding_variable.lookup import combiners
from embedding_variable.lookup import pooled
from embedding_variable.ops import row_ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ragged_tensor
from embedding_variable.tf_names import tensor_shape

# Start of error messages.
_WHAT = "a pooled lookup"


def pool(read, sp_ids, sp_weights, combiner):
  """Pools the rows of each sample; a sample without ids gives zeros.

  A sample whose weights make the divisor 0 gives NaN or infinity, as in TensorFlow.

  Args:
    read: function of distinct ids, int64 `[U]`, that returns their rows `[U, dim]`.
    sp_ids: SparseTensor `[B, ...]` or RaggedTensor of rank 2 of integers.
    sp_weights: None, or the same of floating point.
    combiner: string, a combiner.

  Returns:
    float32 `[B, dim]`.
  """
  unique, inverse, _ = row_ops.unique(math_ops.cast(sp_ids.values, dtypes.int64))
  return pool_rows(array_ops.gather(read(unique), inverse), sp_ids, sp_weights, combiner)


def pool_rows(rows, sp_ids, sp_weights, combiner):
  """The same for rows `[N, dim]`, one for each of the N ids."""
  if isinstance(sp_ids, ragged_tensor.RaggedTensor):
    samples, batch_size, static = sp_ids.value_rowids(), sp_ids.nrows(), None
  else:
    samples = pooled.sample_of_ids(sp_ids.indices)
    static = pooled.static_batch(sp_ids, _WHAT)
    batch_size = pooled.checked_batch(sp_ids, _WHAT)
  weights = None
  if sp_weights is not None:
    weights = math_ops.cast(sp_weights.values, dtypes.float32)
    rows *= array_ops.expand_dims(weights, 1)
  total = combiners.get(combiner).pool(rows, samples, batch_size)
  total.set_shape([static, tensor_shape.dimension_value(rows.shape[-1])])
  return combiners.finish(total, combiner, samples, weights, batch_size, no_nan=False)

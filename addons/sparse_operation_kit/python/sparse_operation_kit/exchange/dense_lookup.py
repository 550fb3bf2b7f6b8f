# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""sok.all2all_dense_embedding: one row per id, from whichever rank owns it."""

from embedding_variable.lookup import combiners
from embedding_variable.lookup import pooled
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import tensor_util

from sparse_operation_kit.exchange import lookup
from sparse_operation_kit.variables import kinds


def all2all_dense_embedding(param, indices):
  """Looks up one row for each id; each rank passes its own ids.

  Each distinct id is sent once, whether or not the caller removed duplicates. The
  gradient of a row is the sum over all ranks.

  Example:

    rows = sok.all2all_dense_embedding(v, tf.constant([3, 5, 3], tf.int64))  # [3, dim]

  Args:
    param: `sok.DynamicVariable`, `sok.Variable` or an embedding variable.
    indices: int64 or int32 `[n]`; n may differ from rank to rank, and be 0.

  Returns:
    float32 `[n, dim]`, in the order of `indices`.

  Raises:
    TypeError: `param` is something else, or ids that are not integers.
    ValueError: ids that do not have one axis.
  """
  parts = kinds.parts(param)
  if not parts:
    raise TypeError("sok.all2all_dense_embedding: param: expected a SOK variable or an "
                    "embedding variable, got %r" % (param,))
  with ops.name_scope("all2all_dense_embedding"):
    if not tensor_util.is_tensor(indices):
      indices = ops.convert_to_tensor(indices, preferred_dtype=dtypes.int64)
    if indices.shape.ndims not in (None, 1):
      raise ValueError("sok.all2all_dense_embedding of '%s': indices: expected one axis, "
                       "got shape %s" % (parts[0].op.name, indices.shape))
    output = lookup.lookup_sparse(param, pooled.each_id_a_sample(indices),
                                  combiners=combiners.SUM)
    output.set_shape([indices.shape.as_list()[0] if indices.shape.ndims else None,
                      parts[0].dim])
    return output

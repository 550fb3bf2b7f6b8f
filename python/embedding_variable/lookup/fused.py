# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DeepRec's fused lookups of one variable.

Embedding variables use them in `tf.nn.embedding_lookup_sparse` and its safe form
anyway: one op forward, one backward. For ordinary variables they are the stock
functions.
"""

from embedding_variable.lookup import combiners
from embedding_variable.lookup import stock_semantics
from embedding_variable.tf_names import embedding_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import sparse_tensor
from embedding_variable.variables import variable as ev


def fused_embedding_lookup_sparse(params,
                                  sp_ids,
                                  sparse_weights=None,
                                  partition_strategy=None,
                                  name=None,
                                  combiner=None,
                                  max_norm=None,
                                  default_id=None,
                                  prune_invalid_ids=False,
                                  blocknums=None):
  """Looks up and pools the ids of one variable.

  Args:
    params: an embedding variable (whole or partitioned), or ordinary variables.
    sp_ids: SparseTensor `[B, ...]` of int32 or int64 ids.
    sparse_weights: None, or a floating point SparseTensor of the same indices.
    partition_strategy: "mod" or "div", of ordinary partitioned variables; None: "div".
    name: name of the op.
    combiner: name of a combiner (combiners.py); None: "mean".
    max_norm: length to which each row is clipped before it is pooled; or None.
    default_id: int, the id of samples without ids; None: they give zeros.
    prune_invalid_ids: drop ids below 0, and unless the combiner is "sum" also ids with
      weights that are not positive. False: no id is dropped.
    blocknums: must be None.

  Returns:
    float32 `[B, dim]`.

  Raises:
    TypeError: `sp_ids` is not a SparseTensor.
    ValueError: the combiner is unknown, or `blocknums` is given.
  """
  if blocknums is not None:
    raise ValueError("fused_embedding_lookup_sparse: blocknums applies only to "
                     "variables of dynamic dimension, whose lookup is not fused")
  if not isinstance(sp_ids, sparse_tensor.SparseTensor):
    raise TypeError("fused_embedding_lookup_sparse: sp_ids: expected a SparseTensor, "
                    "got %r" % (sp_ids,))
  combiner = combiner or combiners.DEFAULT
  strategy = partition_strategy or "div"
  parts = ev.parts_of(params)
  if prune_invalid_ids:
    if parts is not None:
      return stock_semantics.safe_lookup_sparse(parts, sp_ids, sparse_weights, combiner,
                                                default_id, max_norm, True, name)
    return embedding_ops.safe_embedding_lookup_sparse(
        params, sp_ids, sparse_weights, combiner, default_id, name, strategy, max_norm)
  with ops.name_scope(name, "fused_embedding_lookup_sparse") as scope:
    if default_id is not None:
      sp_ids, sparse_weights = stock_semantics.fill_empty_samples(
          sp_ids, sparse_weights, default_id)
    if parts is not None:
      return stock_semantics.lookup_sparse(parts, sp_ids, sparse_weights, combiner,
                                           max_norm, scope)
    return embedding_ops.embedding_lookup_sparse(
        params, sp_ids, sparse_weights, strategy, scope, combiner, max_norm)


def fused_safe_embedding_lookup_sparse(embedding_weights,
                                       sparse_ids,
                                       sparse_weights=None,
                                       combiner="mean",
                                       default_id=None,
                                       name=None,
                                       partition_strategy="div",
                                       max_norm=None,
                                       prune=True):
  """`tf.nn.safe_embedding_lookup_sparse` under DeepRec's name for its fused form.

  Args:
    embedding_weights: an embedding variable (whole or partitioned), or ordinary
      variables.
    sparse_ids: SparseTensor `[d_0, ..., d_n]` of int32 or int64 ids.
    sparse_weights: None, or a floating point SparseTensor of the same shape.
    combiner: name of a combiner (combiners.py).
    default_id: int, the id of samples without ids; None: they give zeros.
    name: name of the op.
    partition_strategy: "mod" or "div", of ordinary partitioned variables.
    max_norm: length to which each row is clipped before it is pooled; or None.
    prune: drop ids below 0 (for embedding variables; TensorFlow always does).

  Returns:
    float32 `[d_0, ..., d_{n-1}, dim]`.
  """
  return embedding_ops.safe_embedding_lookup_sparse(
      embedding_weights, sparse_ids, sparse_weights, combiner, default_id, name,
      partition_strategy, max_norm, **({} if ev.parts_of(embedding_weights) is None else
                                       {"prune": prune}))

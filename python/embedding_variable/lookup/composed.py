# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lookups of variables composed of several: multihash and dynamic dimension."""

from embedding_variable.lookup import combiners
from embedding_variable.lookup import pooled
from embedding_variable.lookup import row_pooling
from embedding_variable.lookup import stock_semantics
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import sparse_tensor
from embedding_variable.variables import dynamic_dimension
from embedding_variable.variables import multihash
from embedding_variable.variables import variable as ev


def is_composed(params):
  """Returns whether `params` is a multihash variable or one of dynamic dimension."""
  return _is_multihash(params) or _is_dynamic(params)


def _is_multihash(params):
  return isinstance(params, multihash.MultiHashVariable)


def _is_dynamic(params):
  return isinstance(params, dynamic_dimension.DynamicDimensionEmbeddingVariable)


def lookup(params, ids, partition_strategy="mod", name=None, max_norm=None,
           blocknums=None):
  """`tf.nn.embedding_lookup` of a composed variable.

  Args:
    params: a variable for which `is_composed` is True.
    ids: integers of any shape.
    partition_strategy: strategy of a partitioned multihash variable.
    name: name of the result.
    max_norm: see `MultiHashVariable.lookup`; None for a variable of dynamic dimension.
    blocknums: for a variable of dynamic dimension: integers of the shape of `ids`, the
      number of blocks in each id's row. The other blocks are zeros, and the key is not
      trained in them.

  Returns:
    `ids.shape + [dim]`.

  Raises:
    ValueError: `blocknums` is missing, not applicable, or has another shape.
    TypeError: ids are not integers.
  """
  if _is_multihash(params):
    if blocknums is not None:
      raise ValueError("embedding lookup of '%s': blocknums applies only to "
                       "variables of dynamic dimension" % params.name)
    return params.lookup(ids, partition_strategy, max_norm, name)
  if blocknums is None:
    raise ValueError("embedding lookup of '%s': a variable of dynamic dimension needs "
                     "blocknums, a number of blocks for each id" % params.name)
  if max_norm is not None:
    raise ValueError("embedding lookup of '%s': max_norm has no meaning for a variable "
                     "of dynamic dimension" % params.name)
  with ops.name_scope(name, "embedding_lookup") as name:
    ids = params.convert_ids(ids)
    blocknums = ops.convert_to_tensor(blocknums, name="blocknums")
    if not blocknums.dtype.is_integer or not blocknums.shape.is_compatible_with(ids.shape):
      raise ValueError(
          "embedding lookup of '%s': blocknums: expected integers of the shape of the ids, "
          "%s, got %s %s" % (params.name, ids.shape, blocknums.dtype.name,
                             blocknums.shape))
    flat = array_ops.reshape(ids, [-1])
    numbers = array_ops.reshape(blocknums, [-1])
    count = array_ops.size(flat, out_type=dtypes.int64)
    # Each id is a sample: with one id in the blocks that it has, and with none, which
    # gives zeros, in the others. All blocks go into one op.
    requests = []
    for i in range(params.block_num):
      mine = array_ops.where(numbers > i)
      requests.append(sparse_tensor.SparseTensor(
          array_ops.concat([mine, array_ops.zeros_like(mine)], 1),
          array_ops.gather(flat, mine[:, 0]), array_ops.stack([count, 1])))
    blocks = pooled.lookup_sparse(
        [stock_semantics.as_params(ev.parts_of(b)) for b in params.blocks], requests,
        combiners=[combiners.SUM] * params.block_num)
    rows = array_ops.concat(blocks, 1)
    rows = array_ops.reshape(
        rows, array_ops.concat([array_ops.shape(ids), [params.dim]], 0), name=name)
    rows.set_shape(ids.shape.concatenate([params.dim]))
    return rows


def lookup_sparse(params, sp_ids, sp_weights=None, partition_strategy="mod", name=None,
                  combiner=None, max_norm=None, blocknums=None):
  """`tf.nn.embedding_lookup_sparse` of a composed variable.

  Args:
    params: a variable for which `is_composed` is True.
    sp_ids: SparseTensor `[B, ...]` of N integers.
    sp_weights: None, or a floating point SparseTensor of the same indices.
    partition_strategy: see `lookup`.
    name: name of the op.
    combiner: name of a combiner (combiners.py); None: "mean".
    max_norm: see `lookup`.
    blocknums: integers `[N]`, see `lookup`.

  Returns:
    float32 `[B, dim]`; zeros for a sample without ids.
  """
  combiner = combiner or combiners.DEFAULT
  combiners.check(combiner, "embedding_lookup_sparse of '%s'" % params.name, sp_weights)
  if not isinstance(sp_ids, sparse_tensor.SparseTensor):
    raise TypeError("embedding_lookup_sparse of '%s': sp_ids: expected a SparseTensor, "
                    "got %r" % (params.name, sp_ids))
  with ops.name_scope(name, "embedding_lookup_sparse"):
    rows = lookup(params, sp_ids.values, partition_strategy, max_norm=max_norm,
                  blocknums=blocknums)
    return row_pooling.pool_rows(math_ops.cast(rows, dtypes.float32), sp_ids, sp_weights,
                                 combiner)


def safe_lookup_sparse(params, sparse_ids, sparse_weights=None, combiner="mean",
                       default_id=None, name=None, partition_strategy="div",
                       max_norm=None, prune=True):
  """`tf.nn.safe_embedding_lookup_sparse` of a multihash variable.

  Args:
    params: a variable for which `is_composed` is True.
    sparse_ids: SparseTensor `[d_0, ..., d_n]` of integers.
    sparse_weights: None, or a floating point SparseTensor of the same shape.
    combiner: name of a combiner (combiners.py).
    default_id: int, the id of samples without ids; None: they give zeros.
    name: name of the op.
    partition_strategy: see `lookup`.
    max_norm: see `lookup`.
    prune: bool; drop ids below 0.

  Returns:
    float32 `[d_0, ..., d_{n-1}, dim]`.

  Raises:
    ValueError: `params` has dynamic dimension: the number of blocks is unknown for ids
      that were dropped or filled in.
  """
  if _is_dynamic(params):
    raise ValueError(
        "safe_embedding_lookup_sparse of '%s': a variable of dynamic dimension needs "
        "blocknums; look it up by tf.nn.embedding_lookup_sparse" % params.name)

  def pool(ids, weights):
    return lookup_sparse(params, ids, weights, partition_strategy, None, combiner,
                         max_norm)

  return stock_semantics.safe_pool(params.name, params.dim, pool, sparse_ids,
                                   sparse_weights, combiner, default_id, prune, name)

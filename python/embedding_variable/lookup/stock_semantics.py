# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.nn.embedding_lookup_sparse` and its safe variant on embedding variables.

The result is that of the stock function on a dense variable, with two differences for
samples without ids. The result has a row for every sample of the dense shape, also for
empty ones at the end, which stock omits. And such a row is zeros, also with weights,
where stock divides 0 by 0.
"""

from embedding_variable.lookup import combiners
from embedding_variable.lookup import embedding_lookup
from embedding_variable.lookup import pooled
from embedding_variable.lookup import row_pooling
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import embedding_ops
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import ragged_tensor
from embedding_variable.tf_names import sparse_ops
from embedding_variable.tf_names import sparse_tensor
from embedding_variable.tf_names import tensor_shape
from embedding_variable.tf_names import tf_logging as logging
from embedding_variable.tf_names import variables


def lookup_sparse(parts, sp_ids, sp_weights, combiner, max_norm, name):
  """`tf.nn.embedding_lookup_sparse` of the parts of one embedding variable.

  Args:
    parts: list of embedding variables.
    sp_ids: SparseTensor `[B, ...]` or RaggedTensor of int32 or int64 ids.
    sp_weights: None, or floating point weights of the same kind and indices.
    combiner: name of a combiner (combiners.py); None: "mean".
    max_norm: length to which each row is clipped before it is pooled; or None.
    name: name of the op.

  Returns:
    float32 `[B, dim]`.

  Raises:
    TypeError: `sp_ids` or `sp_weights` is neither a SparseTensor nor a RaggedTensor.
    ValueError: the combiner is unknown.
  """
  variable = parts[0].op.name
  if combiner is None:
    logging.warn("The default value of combiner will change from \"mean\" "
                 "to \"sqrtn\" after 2016/11/01.")
    combiner = combiners.DEFAULT
  combiners.check(combiner, "embedding_lookup_sparse of '%s'" % variable, sp_weights)
  for what, value in (("sp_ids", sp_ids), ("sp_weights", sp_weights)):
    if value is None and what == "sp_weights":
      continue
    if not isinstance(value, (sparse_tensor.SparseTensor, ragged_tensor.RaggedTensor)):
      raise TypeError("embedding_lookup_sparse of '%s': %s: expected a SparseTensor or a "
                      "RaggedTensor, got %r" % (variable, what, value))
  if sp_ids.shape.ndims != 2:
    sp_ids, sp_weights = _sparse(sp_ids), _sparse(sp_weights)
  with ops.name_scope(name, "embedding_lookup_sparse"):
    if max_norm is not None:
      # The fused op cannot clip single rows.
      parts[0].convert_ids(sp_ids.values)
      return row_pooling.pool(
          lambda ids: embedding_lookup.lookup(parts, ids, max_norm=max_norm), sp_ids,
          sp_weights, combiner)
    return pooled.lookup_sparse(
        [as_params(parts)], [sp_ids],
        None if sp_weights is None else [sp_weights], [combiner])[0]


def _sparse(ids):
  """Returns ids or weights of any kind as a SparseTensor; other things unchanged."""
  return ids.to_sparse() if isinstance(ids, ragged_tensor.RaggedTensor) else ids


def as_params(parts):
  """Returns the list of parts as one argument for `lookup_sparse`."""
  if len(parts) == 1:
    return parts[0]
  for i, part in enumerate(parts):
    if part._get_save_slice_info() is None:  # pylint: disable=protected-access
      part._set_save_slice_info(  # pylint: disable=protected-access
          variables.Variable.SaveSliceInfo(parts[0].op.name, [len(parts)], [i],
                                           [1]))
  return variables.PartitionedVariable(
      name=parts[0].op.name, shape=[len(parts)], dtype=dtypes.float32,
      variable_list=parts, partitions=[len(parts)])


def safe_lookup_sparse(parts, sparse_ids, sparse_weights, combiner, default_id,
                       max_norm, prune, name):
  """`tf.nn.safe_embedding_lookup_sparse` of the parts of one embedding variable.

  Like TensorFlow, this drops ids below 0 (unless `prune` is False, since any id is a
  valid key in a table), and unless the combiner is "sum" also ids with weights that are
  not positive. Samples without ids give zeros, or the row of `default_id`.

  Args:
    parts: list of embedding variables.
    sparse_ids: SparseTensor `[d_0, ..., d_n]` or RaggedTensor of int32 or int64 ids.
    sparse_weights: None, or floating point weights of the same kind and shape.
    combiner: name of a combiner (combiners.py).
    default_id: int or None.
    max_norm: as in `lookup_sparse`.
    prune: bool.
    name: name of the op.

  Returns:
    float32 `[d_0, ..., d_{n-1}, dim]`.
  """
  variable = parts[0].op.name
  sparse_ids, sparse_weights = _sparse(sparse_ids), _sparse(sparse_weights)
  check_sparse(variable, sparse_ids)
  parts[0].convert_ids(sparse_ids.values)

  def pool(ids, weights):
    return lookup_sparse(parts, ids, weights, combiner, max_norm, None)

  return safe_pool(variable, parts[0].dim, pool, sparse_ids, sparse_weights, combiner,
                   default_id, prune, name)


def fill_empty_samples(sparse_ids, sparse_weights, default_id):
  """Returns (ids, weights) in which each sample without ids gets `default_id` with
  weight 1.

  Args:
    sparse_ids: SparseTensor `[B, ids]`.
    sparse_weights: None, or a SparseTensor of the same indices.
    default_id: int, the id that is filled in.
  """
  sparse_ids = fill_empty_rows(sparse_ids, default_id)
  if sparse_weights is not None:
    sparse_weights = fill_empty_rows(sparse_weights, 1.0)
  return sparse_ids, sparse_weights


def fill_empty_rows(sparse, value):
  """`tf.sparse.fill_empty_rows`, with an error for more rows than a batch can have."""
  batch_size = pooled.checked_batch(sparse, "safe_embedding_lookup_sparse")
  sparse = sparse_tensor.SparseTensor(
      sparse.indices, sparse.values,
      array_ops.concat([[batch_size], sparse.dense_shape[1:]], 0))
  return sparse_ops.sparse_fill_empty_rows(
      sparse, math_ops.cast(value, sparse.dtype))[0]


def check_sparse(variable, sparse_ids):
  """Raises TypeError unless the ids of a safe lookup are a SparseTensor."""
  if not isinstance(sparse_ids, sparse_tensor.SparseTensor):
    raise TypeError(
        "safe_embedding_lookup_sparse of '%s': sparse_ids: expected a SparseTensor or a "
        "RaggedTensor, got %r" % (variable, sparse_ids))


def safe_pool(variable, dim, pool, sparse_ids, sparse_weights, combiner, default_id,
              prune, name):
  """Runs any pooled lookup with the id handling of `safe_lookup_sparse`.

  Args:
    variable: string, its name.
    dim: int, length of a row.
    pool: function of a SparseTensor `[B, ids]` and its weights or None, which returns
      float32 `[B, dim]`.
    sparse_ids: see `safe_lookup_sparse`; so are the others.

  Returns:
    float32 `[d_0, ..., d_{n-1}, dim]`.
  """
  with ops.name_scope(name, "embedding_lookup") as scope:
    safe = SafeIds(variable, sparse_ids, sparse_weights, combiner, default_id, prune)
    return safe.restore_shape(pool(safe.ids, safe.weights), dim, scope)


class SafeIds(object):
  """The ids of a safe lookup as a matrix, without dropped ids.

  Attributes:
    ids: SparseTensor `[B, ids]`.
    weights: None, or a SparseTensor of the same indices.
  """

  def __init__(self, variable, sparse_ids, sparse_weights, combiner, default_id=None,
               prune=True):
    check_sparse(variable, sparse_ids)
    original_shape = sparse_ids.dense_shape
    static_rank = tensor_shape.dimension_value(original_shape.get_shape()[0])
    if static_rank is not None and static_rank < 2:
      raise ValueError(
          "safe_embedding_lookup_sparse of '%s': sparse_ids: expected a rank of at "
          "least 2, got %d" % (variable, static_rank))
    self._static_rank = static_rank
    self._static_shape = sparse_ids.shape
    rank = array_ops.size(original_shape) if static_rank is None else static_rank
    self._leading = array_ops.slice(original_shape, [0], [rank - 1])
    if static_rank != 2:
      sparse_ids = sparse_ops.sparse_reshape(sparse_ids, [
          math_ops.reduce_prod(self._leading),
          array_ops.gather(original_shape, rank - 1)
      ])
    if sparse_weights is not None:
      sparse_weights = sparse_tensor.SparseTensor(
          sparse_ids.indices, sparse_weights.values, sparse_ids.dense_shape)
    # pylint: disable=protected-access
    if prune:
      sparse_ids, sparse_weights = embedding_ops._prune_invalid_ids(
          sparse_ids, sparse_weights)
    if combiners.needs_positive_weights(combiner):
      sparse_ids, sparse_weights = embedding_ops._prune_invalid_weights(
          sparse_ids, sparse_weights)
    # pylint: enable=protected-access
    if default_id is not None:
      # Without a default id nothing is filled in: the fused lookup returns zeros for an
      # empty sample, and keys that are not in the batch must not appear.
      sparse_ids, sparse_weights = fill_empty_samples(sparse_ids, sparse_weights,
                                                      default_id)
    self.ids, self.weights = sparse_ids, sparse_weights

  def restore_shape(self, pooled_rows, dim, name=None):
    """Returns pooled rows `[B, dim]` as `[d_0, ..., d_{n-1}, dim]`."""
    result = array_ops.reshape(
        pooled_rows, array_ops.concat([self._leading, [dim]], 0), name=name)
    if self._static_shape.ndims is not None:
      result.set_shape(self._static_shape[:-1].concatenate([dim]))
    else:
      result.set_shape(tensor_shape.unknown_shape(self._static_rank)
                       if self._static_rank is not None else None)
    return result

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lookups in which some ids have their own row and others share rows.

Rare ids are hardly trained, yet an unbounded table would be full of them. An adaptive
lookup takes a mask, computed by the graph (from counts, for example). It sends each id
either to an embedding variable, where it has its own row, or to a dense table of few
rows, where id `k` reads row `floormod(k, rows)`.
"""

from embedding_variable.lookup import combiners
from embedding_variable.lookup import embedding_lookup
from embedding_variable.lookup import row_pooling
from embedding_variable.lookup import stock_semantics
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import check_ops
from embedding_variable.tf_names import data_flow_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import embedding_ops
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import sparse_ops
from embedding_variable.tf_names import sparse_tensor
from embedding_variable.tf_names import variables
from embedding_variable.variables import variable as ev


def adaptive_embedding_lookup_sparse(hash_params, ev_params, sp_ids, hash_ev_ids,
                                     sp_weights=None, partition_strategy="mod", name=None,
                                     combiner=None, max_norm=None):
  """Looks ids up in an embedding variable or a dense table, and pools each sample.

  Args:
    hash_params: float32 `[rows, dim]`: a dense variable, a `PartitionedVariable`, or a
      list of dense variables; the table that ids share.
    ev_params: an embedding variable, or a `PartitionedVariable` of them.
    sp_ids: SparseTensor `[B, ...]` of N int32 or int64 ids, one sample a row.
    hash_ev_ids: integers or bools `[N]`, one per id: 0 reads `hash_params`, other
      values read `ev_params`.
    sp_weights: None, or a floating point SparseTensor of the same indices.
    partition_strategy: strategy of `hash_params` if it has parts.
    name: name of the op.
    combiner: name of a combiner (combiners.py); None: "mean".
    max_norm: length to which rows are clipped, or None.

  Returns:
    float32 `[B, dim]`; zeros for a sample without ids. Both tables get gradients.

  Raises:
    TypeError: `ev_params` is not an embedding variable, or `sp_ids` is not a
      SparseTensor of integers.
    ValueError: the combiner is unknown, the tables have different dims, or the mask has
      another shape. If that shape is known only when the op runs: InvalidArgumentError.
  """
  parts = _parts(ev_params)
  combiner = combiner or combiners.DEFAULT
  combiners.check(combiner, "adaptive lookup of '%s'" % parts[0].op.name, sp_weights)
  if not isinstance(sp_ids, sparse_tensor.SparseTensor):
    raise TypeError("adaptive lookup of '%s': the ids: expected a SparseTensor, got %r" %
                    (parts[0].op.name, sp_ids))
  with ops.name_scope(name, "adaptive_embedding_lookup_sparse"):
    mask = _mask(parts, hash_ev_ids, sp_ids)
    rows = _rows(hash_params, parts, sp_ids.values, mask, partition_strategy, max_norm)
    return row_pooling.pool_rows(rows, sp_ids, sp_weights, combiner)


def safe_adaptive_embedding_lookup_sparse(
    hash_embedding_weights, ev_embedding_weights, sparse_ids, hash_ev_ids,
    sparse_weights=None, combiner="mean", default_id=None, name=None,
    partition_strategy="div", max_norm=None):
  """The same for ids of features, which may be invalid.

  Ids below 0 are dropped, and ids with weights that are not positive too unless the
  combiner is "sum". A sample without ids gives zeros, or the row of `default_id` in the
  embedding variable.

  Args:
    hash_embedding_weights: see `hash_params` of `adaptive_embedding_lookup_sparse`.
    ev_embedding_weights: see `ev_params` of that function.
    sparse_ids: SparseTensor `[B, ...]` of N int32 or int64 ids.
    hash_ev_ids: integers or bools `[N]`, see that function.
    sparse_weights: None, or a floating point SparseTensor of the same indices.
    combiner: name of a combiner (combiners.py).
    default_id: int or None.
    name: name of the op.
    partition_strategy: strategy of `hash_embedding_weights` if it has parts.
    max_norm: length to which rows are clipped, or None.

  Returns:
    float32 `[B, dim]`.

  Raises:
    TypeError, ValueError: as for `adaptive_embedding_lookup_sparse`.
  """
  parts = _parts(ev_embedding_weights)
  if not isinstance(sparse_ids, sparse_tensor.SparseTensor):
    raise TypeError("adaptive lookup of '%s': the ids: expected a SparseTensor, got %r" %
                    (parts[0].op.name, sparse_ids))
  with ops.name_scope(name, "safe_adaptive_embedding_lookup_sparse"):
    mask = _mask(parts, hash_ev_ids, sparse_ids)
    keep = math_ops.greater_equal(sparse_ids.values, 0)
    if sparse_weights is not None and combiners.needs_positive_weights(combiner):
      keep = math_ops.logical_and(keep, math_ops.greater(sparse_weights.values, 0))
    if sparse_weights is not None:
      sparse_weights = sparse_ops.sparse_retain(sparse_weights, keep)
    mask = array_ops.boolean_mask(mask, keep)
    sparse_ids = sparse_ops.sparse_retain(sparse_ids, keep)
    if default_id is not None:
      # The mask is filtered like the ids; a default id that is filled in has its own
      # row.
      masks = sparse_tensor.SparseTensor(sparse_ids.indices, mask, sparse_ids.dense_shape)
      mask = stock_semantics.fill_empty_rows(masks, 1).values
      sparse_ids, sparse_weights = stock_semantics.fill_empty_samples(
          sparse_ids, sparse_weights, default_id)
    return adaptive_embedding_lookup_sparse(
        hash_embedding_weights, ev_embedding_weights, sparse_ids, mask, sparse_weights,
        partition_strategy, combiner=combiner, max_norm=max_norm)


def _parts(params):
  parts = ev.parts_of(params)
  if parts is None:
    raise TypeError("adaptive lookup: ev_params: expected an embedding variable "
                    "(tf.get_embedding_variable), got %r" % (params,))
  return parts


def _mask(parts, mask, sp_ids):
  """Returns int32 `[N]` of 0 and 1, checked against the ids."""
  mask = ops.convert_to_tensor(mask, name="hash_ev_ids")
  if not (mask.dtype.is_integer or mask.dtype.is_bool):
    raise TypeError("adaptive lookup of '%s': the mask: expected integers or bools, got "
                    "%s" % (parts[0].op.name, mask.dtype.name))
  if not mask.shape.is_compatible_with(sp_ids.values.shape):
    raise ValueError("adaptive lookup of '%s': the mask: expected one element for each "
                     "id, shape %s, got %s" % (parts[0].op.name, sp_ids.values.shape,
                                               mask.shape))
  fits = check_ops.assert_equal(
      array_ops.shape(mask), array_ops.shape(sp_ids.values),
      message="adaptive lookup of '%s': the mask: expected one element for each id" %
      parts[0].op.name)
  with ops.control_dependencies([fits]):
    if not mask.dtype.is_bool:
      mask = math_ops.not_equal(mask, 0)
    return math_ops.cast(mask, dtypes.int32)


def _rows(hash_params, parts, ids, mask, partition_strategy, max_norm):
  """Returns float32 `[N, dim]`."""
  ids = parts[0].convert_ids(ids)
  count, dim = _shape_of(hash_params)
  if dim != parts[0].dim:
    raise ValueError("adaptive lookup of '%s': its rows have length %d, those of the "
                     "shared table %d" % (parts[0].op.name, parts[0].dim, dim))
  shared, own = data_flow_ops.dynamic_partition(ids, mask, 2)
  found = [
      embedding_ops.embedding_lookup(
          hash_params, math_ops.floormod(math_ops.cast(shared, dtypes.int64), count),
          partition_strategy, max_norm=max_norm),
      embedding_lookup.lookup(parts, own, max_norm=max_norm)
  ]
  positions = data_flow_ops.dynamic_partition(
      math_ops.range(array_ops.size(ids)), mask, 2)
  # A stitch would save an op, but has a wrong static shape if there are no ids.
  order = array_ops.invert_permutation(array_ops.concat(positions, 0))
  return array_ops.gather(array_ops.concat(found, 0), order)


def _shape_of(params):
  """Returns (rows, dim) of a dense table, which may have parts."""
  pieces = [params]
  if isinstance(params, (list, tuple)):
    pieces = list(params)
  shapes = [p.shape if isinstance(p, variables.PartitionedVariable) else
            ops.convert_to_tensor(p).shape for p in pieces]
  shapes = [s.as_list() if hasattr(s, "as_list") else list(s) for s in shapes]
  if any(len(s) != 2 or None in s for s in shapes) or len({s[1] for s in shapes}) != 1:
    raise ValueError("adaptive lookup: the shared table: expected shape [rows, dim], got "
                     "%s" % shapes)
  return sum(s[0] for s in shapes), shapes[0][1]

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: `tf.nn.embedding_lookup` and its sparse variants.

Why: stock `embedding_lookup` handles a single embedding variable unpatched. With
several parts, however, stock code divides the ids by the number of parts, which merges
keys. The sparse variants would use five ops to read, copy and pool instead of one.

`tf.gather` with ragged ids would read the whole variable.
"""

from tensorflow.python.ops import embedding_ops
from tensorflow.python.ops.ragged import ragged_gather_ops
from tensorflow.python.ops.ragged import ragged_tensor
from tensorflow.python.util import dispatch

from embedding_variable.integration import patching
from embedding_variable.lookup import composed
from embedding_variable.lookup import embedding_lookup as row_lookup
from embedding_variable.lookup import stock_semantics
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import ops
from embedding_variable.variables import variable as ev


def install():
  """Replaces the lookup functions, wherever TensorFlow holds them."""
  patching.wrap(embedding_ops, "_embedding_lookup_and_transform",
                _lookup_and_transform)
  for name, make in (("embedding_lookup", _embedding_lookup),
                     ("embedding_lookup_sparse", _embedding_lookup_sparse),
                     ("safe_embedding_lookup_sparse",
                      _safe_embedding_lookup_sparse)):
    stock, replacement = patching.wrap(embedding_ops, name, make)
    patching.replace_exports(stock, replacement)
  stock, replacement = patching.wrap(ragged_gather_ops, "gather", _ragged_gather)
  # 2.x calls it through a registry too.
  if hasattr(dispatch, "unregister_dispatch_for"):
    dispatch.unregister_dispatch_for(stock)
    dispatch.dispatch_for_api(array_ops.gather_v2)(replacement)


def _parts_of(params):
  """Returns the parts if `params` is an embedding variable, else None."""
  return None if params is None else ev.parts_of(params)


def _reject(params, parts, **arguments):
  """Raises for arguments that do not apply to `params`."""
  for name, value in sorted(arguments.items()):
    if value is not None:
      variable = parts[0].op.name if parts else getattr(params, "name", params)
      raise ValueError(
          "embedding lookup of '%s': %s applies only to %s" %
          (variable, name, "variables of dynamic dimension "
           "(tf.get_dynamic_dimension_embedding_variable)" if name == "blocknums" else
           "embedding variables (tf.get_embedding_variable)"))


def _lookup_and_transform(stock):

  def embedding_lookup_and_transform(params, ids, partition_strategy="mod",
                                     name=None, max_norm=None, transform_fn=None):
    parts = _parts_of(params)
    if parts is None:
      return stock(params, ids, partition_strategy, name, max_norm, transform_fn)
    return row_lookup.lookup(parts, ids, name, max_norm, transform_fn)

  return embedding_lookup_and_transform


def _embedding_lookup(stock):

  def embedding_lookup(params, ids, partition_strategy="mod", name=None,
                       validate_indices=True, max_norm=None, ev_init_value=None,
                       blocknums=None, counts=None):
    if composed.is_composed(params):
      return composed.lookup(params, ids, partition_strategy, name, max_norm, blocknums)
    parts = _parts_of(params)
    _reject(params, parts, blocknums=blocknums)
    if parts is None:
      _reject(params, parts, ev_init_value=ev_init_value, counts=counts)
      return stock(params, ids, partition_strategy, name, validate_indices,
                   max_norm)
    return row_lookup.lookup(parts, ids, name, max_norm, ev_init_value=ev_init_value,
                             counts=counts)

  return embedding_lookup


def _embedding_lookup_sparse(stock):

  def embedding_lookup_sparse(params, sp_ids, sp_weights, partition_strategy="mod",
                              name=None, combiner=None, max_norm=None,
                              blocknums=None, **kwargs):
    if isinstance(blocknums, bool):
      # 2.x has an argument allow_fast_lookup in this place.
      blocknums, kwargs["allow_fast_lookup"] = None, blocknums
    if composed.is_composed(params):
      return composed.lookup_sparse(params, sp_ids, sp_weights, partition_strategy, name,
                                    combiner, max_norm, blocknums)
    parts = _parts_of(params)
    _reject(params, parts, blocknums=blocknums)
    if parts is None:
      return stock(params, sp_ids, sp_weights, partition_strategy, name, combiner,
                   max_norm, **kwargs)
    return stock_semantics.lookup_sparse(parts, sp_ids, sp_weights, combiner,
                                         max_norm, name)

  return embedding_lookup_sparse


def _safe_embedding_lookup_sparse(stock):

  def safe_embedding_lookup_sparse(embedding_weights, sparse_ids,
                                   sparse_weights=None, combiner="mean",
                                   default_id=None, name=None,
                                   partition_strategy="div", max_norm=None,
                                   prune=True, **kwargs):
    if composed.is_composed(embedding_weights):
      return composed.safe_lookup_sparse(
          embedding_weights, sparse_ids, sparse_weights, combiner, default_id, name,
          partition_strategy, max_norm, prune)
    parts = _parts_of(embedding_weights)
    if parts is None:
      return stock(embedding_weights, sparse_ids, sparse_weights, combiner,
                   default_id, name, partition_strategy, max_norm, **kwargs)
    return stock_semantics.safe_lookup_sparse(parts, sparse_ids, sparse_weights,
                                              combiner, default_id, max_norm, prune,
                                              name)

  return safe_embedding_lookup_sparse


def _ragged_gather(stock):
  """Wraps the function that `tf.gather` calls for ragged ids."""

  def gather(params, indices, validate_indices=None, axis=0, batch_dims=0, name=None):
    parts = _parts_of(params)
    if parts is None or not ragged_tensor.is_ragged(indices) or axis or batch_dims:
      return stock(params, indices, validate_indices, axis, batch_dims, name)
    with ops.name_scope(name, "RaggedGather"):
      return indices.with_flat_values(row_lookup.lookup(parts, indices.flat_values))

  return gather

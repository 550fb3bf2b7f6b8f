# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: `tf.nn.embedding_lookup` and its sparse variants.

Why: stock `embedding_lookup` handles a single embedding variable unpatched. With
several parts, however, stock code divides the ids by the number of parts, which merges
keys. The sparse variants would use five ops to read, copy and pool instead of one.

`tf.gather` with ragged ids would read the whole variable.
"""

import inspect
import sys

from tensorflow.python.ops import embedding_ops
from tensorflow.python.ops.ragged import ragged_gather_ops
from tensorflow.python.ops.ragged import ragged_tensor
from tensorflow.python.platform import tf_logging as logging
from tensorflow.python.util import dispatch

from embedding_variable.integration import patching
from embedding_variable.lookup import composed
from embedding_variable.lookup import embedding_lookup as row_lookup
from embedding_variable.lookup import stock_semantics
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import ops
from embedding_variable.variables import variable as ev


def install():
  """Replaces the lookup functions."""
  patching.wrap(embedding_ops, "_embedding_lookup_and_transform",
                _lookup_and_transform)
  for name, make in (("embedding_lookup", _embedding_lookup),
                     ("embedding_lookup_sparse", _embedding_lookup_sparse),
                     ("safe_embedding_lookup_sparse",
                      _safe_embedding_lookup_sparse)):
    patching.wrap(embedding_ops, name, make)
  stock, replacement = patching.wrap(ragged_gather_ops, "gather", _ragged_gather)
  # 2.x calls it through a registry too.
  if hasattr(dispatch, "unregister_dispatch_for"):
    dispatch.unregister_dispatch_for(stock)
    dispatch.dispatch_for_api(array_ops.gather_v2)(replacement)


def _parts_of(params):
  """Returns the parts if `params` is an embedding variable, else None."""
  return None if params is None else ev.parts_of(params)


def _check_arguments(params, parts, blocknums, **of_tables):
  """Raises for arguments that only tables have, and reports `blocknums` once.

  `blocknums` has no effect unless the variable is of dynamic dimension, as in DeepRec.
  """
  variable = parts[0].op.name if parts else getattr(params, "name", params)
  for name, value in sorted(of_tables.items()):
    if value is not None and parts is None:
      raise ValueError("embedding lookup of '%s': %s applies only to embedding variables "
                       "(tf.get_embedding_variable)" % (variable, name))
  if blocknums is not None and not _reported:
    _reported.append(variable)
    logging.warning(
        "embedding lookup of '%s': blocknums has no effect; it applies only to variables "
        "of dynamic dimension (tf.get_dynamic_dimension_embedding_variable)", variable)


# The variable whose lookup has reported `blocknums`, if there is one.
_reported = []


def _lookup_and_transform(stock):

  def embedding_lookup_and_transform(params, ids, *args, **kwargs):
    parts = _parts_of(params)
    if parts is None:
      return stock(params, ids, *args, **kwargs)
    return of_table(parts, ids, *args, **kwargs)

  def of_table(parts, ids, unused_strategy="mod", name=None, max_norm=None,
               transform_fn=None, **unused_kwargs):
    return row_lookup.lookup(parts, ids, name, max_norm, transform_fn)

  return embedding_lookup_and_transform


def _embedding_lookup(stock):

  def embedding_lookup(params, ids, partition_strategy="mod", name=None,
                       validate_indices=True, max_norm=None, ev_init_value=None,
                       blocknums=None, counts=None, *args, **kwargs):
    if composed.is_composed(params):
      return composed.lookup(params, ids, partition_strategy, name, max_norm, blocknums)
    parts = _parts_of(params)
    _check_arguments(params, parts, blocknums, ev_init_value=ev_init_value, counts=counts)
    if parts is None:
      return stock(params, ids, partition_strategy, name, validate_indices,
                   max_norm, *args, **kwargs)
    return row_lookup.lookup(parts, ids, name, max_norm, ev_init_value=ev_init_value,
                             counts=counts)

  return embedding_lookup


def _takes_fast_lookup(stock):
  """Returns whether a function has 2.x's argument in the place of DeepRec's last one."""
  return "allow_fast_lookup" in inspect.signature(stock).parameters


def _embedding_lookup_sparse(stock):
  is_of_2x = _takes_fast_lookup(stock)

  def embedding_lookup_sparse(params, sp_ids, sp_weights, partition_strategy="mod",
                              name=None, combiner=None, max_norm=None, *args,
                              blocknums=None, **kwargs):
    _refuse_stock_safe_lookup(params, sys._getframe(1))  # pylint: disable=protected-access
    if args and not is_of_2x:
      blocknums, args = args[0], args[1:]
    if composed.is_composed(params):
      return composed.lookup_sparse(params, sp_ids, sp_weights, partition_strategy, name,
                                    combiner, max_norm, blocknums)
    parts = _parts_of(params)
    _check_arguments(params, parts, blocknums)
    if parts is None:
      return stock(params, sp_ids, sp_weights, partition_strategy, name, combiner,
                   max_norm, *args, **kwargs)
    return stock_semantics.lookup_sparse(parts, sp_ids, sp_weights, combiner,
                                         max_norm, name)

  return embedding_lookup_sparse


def refuse_stock_of(stock):
  """Makes calls of a stock safe lookup raise if they reach a table.

  A script may have taken the stock function before it was replaced, for example in a
  `functools.partial`. It gives samples without ids the id 0, which would be a new key.

  Args:
    stock: the function that was replaced.
  """
  _stock_code.add(inspect.unwrap(stock).__code__)


# Code of the stock safe lookups.
_stock_code = set()


def _refuse_stock_safe_lookup(params, caller):
  """Raises if a stock safe lookup looks up a table; `caller` is the calling frame."""
  parts = _parts_of(params) if caller.f_code in _stock_code else None
  if parts is not None:
    while caller.f_back is not None and caller.f_globals["__name__"].startswith(
        "tensorflow."):
      caller = caller.f_back
    raise ValueError(
        "embedding lookup of '%s': module %s calls TensorFlow's own "
        "safe_embedding_lookup_sparse, which it took before embedding_variable was "
        "imported; import embedding_variable first" % (
            parts[0].op.name, caller.f_globals["__name__"]))


def _safe_embedding_lookup_sparse(stock):
  refuse_stock_of(stock)
  is_of_2x = _takes_fast_lookup(stock)

  def safe_embedding_lookup_sparse(embedding_weights, sparse_ids,
                                   sparse_weights=None, combiner="mean",
                                   default_id=None, name=None,
                                   partition_strategy="div", max_norm=None,
                                   *args, prune=True, **kwargs):
    if args and not is_of_2x:
      prune, args = args[0], args[1:]
    if composed.is_composed(embedding_weights):
      return composed.safe_lookup_sparse(
          embedding_weights, sparse_ids, sparse_weights, combiner, default_id, name,
          partition_strategy, max_norm, prune)
    parts = _parts_of(embedding_weights)
    if parts is None:
      return stock(embedding_weights, sparse_ids, sparse_weights, combiner,
                   default_id, name, partition_strategy, max_norm, *args, **kwargs)
    return stock_semantics.safe_lookup_sparse(parts, sparse_ids, sparse_weights,
                                              combiner, default_id, max_norm, prune,
                                              name)

  return safe_embedding_lookup_sparse


def _ragged_gather(stock):
  """Wraps the function that `tf.gather` calls for ragged ids."""

  def gather(params, indices, *args, **kwargs):
    parts = _parts_of(params)
    if parts is not None and ragged_tensor.is_ragged(indices):
      result = of_table(parts, indices, *args, **kwargs)
      if result is not None:
        return result
    return stock(params, indices, *args, **kwargs)

  def of_table(parts, indices, unused_validate=None, axis=None, batch_dims=0, name=None,
               **unused_kwargs):
    if axis or batch_dims:
      return None
    with ops.name_scope(name, "RaggedGather"):
      return indices.with_flat_values(row_lookup.lookup(parts, indices.flat_values))

  return gather

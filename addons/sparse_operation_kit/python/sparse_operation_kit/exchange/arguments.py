# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the arguments of lookup_sparse in the current and in older forms.

Three orders of arguments are in use:

  lookup_sparse(params, sp_ids, sp_weights, combiners)    today
  lookup_sparse(params, indices, hotness, combiners)      DeepRec's age
  lookup_sparse(params, sp_ids, combiners)                in between

The type of the third argument decides: numbers are hotness, strings are combiners,
anything else is weights.
"""

import collections
import numbers

from embedding_variable.lookup import combiners as combiners_lib
from embedding_variable.lookup import pooled
from embedding_variable.tf_names import tf

_hotness_warned = False

# params, sp_ids: lists of equal length. sp_weights: list of that length, or None.
# combiners: list of combiner names. is_list: whether sp_ids was given as a list.
Lookups = collections.namedtuple(
    "Lookups", ["params", "sp_ids", "sp_weights", "combiners", "is_list"])


def _as_list(value):
  return list(value) if isinstance(value, (list, tuple)) else [value]


def _all_instances(value, types):
  values = _as_list(value)
  return bool(values) and all(
      isinstance(v, types) and not isinstance(v, bool) for v in values)


def _is_hotness(value):
  return _all_instances(value, numbers.Integral)


def _is_combiners(value):
  return _all_instances(value, str)


def _warn_hotness():
  global _hotness_warned
  if not _hotness_warned:
    _hotness_warned = True
    tf.compat.v1.logging.warning(
        "sok.lookup_sparse: hotness is ignored; any number of ids per sample "
        "works. Leave the argument out.")


def _variable_name(param):
  return getattr(param, "name", None) or str(param)


def _read_combiners(combiners, params):
  """Returns a list of combiner names, one per variable."""
  if combiners is None:
    return [combiners_lib.DEFAULT] * len(params)
  combiners = _as_list(combiners)
  if len(combiners) != len(params):
    raise ValueError(
        "sok.lookup_sparse: expected %d combiners, one per variable, got %d: %r" %
        (len(params), len(combiners), combiners))
  result = []
  for param, combiner in zip(params, combiners):
    # Check the type first: a list cannot be a dict key.
    if not isinstance(combiner, str) or combiner not in combiners_lib.SOK_SPELLINGS:
      raise ValueError(
          "sok.lookup_sparse: the combiner of variable '%s': expected %s, got %r" %
          (_variable_name(param), combiners_lib.in_words(combiners_lib.SOK_NAMES),
           combiner))
    result.append(combiners_lib.SOK_SPELLINGS[combiner])
  return result


def _check_ids(params, sp_ids):
  for param, ids in zip(params, sp_ids):
    if not isinstance(ids, (tf.SparseTensor, tf.compat.v1.SparseTensorValue,
                            tf.RaggedTensor)):
      raise TypeError(
          "sok.lookup_sparse: the ids of variable '%s': expected a SparseTensor or a "
          "RaggedTensor, got %r" % (_variable_name(param), ids))
    check_rank("sok.lookup_sparse: the ids of variable '%s'" % _variable_name(param), ids,
               "[batch, ids]")


def check_rank(what, ids, shape):
  """Raises ValueError if ids have another rank than 2.

  Args:
    what: string that starts the error.
    ids: tensor, SparseTensor, SparseTensorValue or RaggedTensor.
    shape: string, the shape that is expected.
  """
  if isinstance(ids, tf.compat.v1.SparseTensorValue):
    ids = tf.SparseTensor.from_value(ids)
  rank = pooled.rank_of(ids)
  if rank not in (None, 2):
    raise ValueError("%s: expected the shape %s, of rank 2, got a %s of rank %d and shape "
                     "%s; reshape them (tf.reshape, tf.sparse.reshape or "
                     "RaggedTensor.merge_dims)" %
                     (what, shape, type(ids).__name__, rank, ids.shape))


def read(params, sp_ids, sp_weights, combiners, hotness, indices):
  """Converts the arguments of lookup_sparse to one form.

  Args:
    params, sp_ids, sp_weights, combiners: arguments of lookup_sparse, current or older.
    hotness: keyword of older scripts; ignored.
    indices: older name of sp_ids.

  Returns:
    Lookups.

  Raises:
    TypeError, ValueError: an argument is given twice or missing, has another type
      than expected, or the numbers of variables, ids, weights and combiners differ.
  """
  if indices is not None:
    if sp_ids is not None:
      raise TypeError(
          "sok.lookup_sparse: indices is the former name of sp_ids; give one of "
          "them, not both")
    sp_ids = indices
  if sp_ids is None:
    raise TypeError("sok.lookup_sparse: sp_ids is missing")
  if _is_hotness(sp_weights):
    if hotness is not None:
      raise TypeError("sok.lookup_sparse: hotness is given twice")
    hotness, sp_weights = sp_weights, None
  elif _is_combiners(sp_weights):
    if combiners is not None:
      raise TypeError(
          "sok.lookup_sparse: combiners are given twice, %r and %r" %
          (sp_weights, combiners))
    combiners, sp_weights = sp_weights, None
  if hotness is not None:
    _warn_hotness()

  is_list = isinstance(sp_ids, (list, tuple))
  params = _as_list(params)
  # SparseTensorValue is a tuple, but holds the ids of one table.
  if isinstance(sp_ids, tf.compat.v1.SparseTensorValue):
    is_list, sp_ids = False, [sp_ids]
  sp_ids = _as_list(sp_ids)
  if len(params) != len(sp_ids):
    raise ValueError(
        "sok.lookup_sparse: expected one sp_ids per variable, got %d variables "
        "and %d sp_ids" % (len(params), len(sp_ids)))
  if not params:
    raise ValueError("sok.lookup_sparse: params is empty")
  _check_ids(params, sp_ids)
  if sp_weights is not None:
    if isinstance(sp_weights, tf.compat.v1.SparseTensorValue):
      sp_weights = [sp_weights]
    sp_weights = _as_list(sp_weights)
    if len(sp_weights) != len(sp_ids):
      raise ValueError(
          "sok.lookup_sparse: expected one sp_weights per sp_ids, got %d and %d" %
          (len(sp_weights), len(sp_ids)))
    if all(w is None for w in sp_weights):
      sp_weights = None
  return Lookups(params, sp_ids, sp_weights,
                 _read_combiners(combiners, params), is_list)

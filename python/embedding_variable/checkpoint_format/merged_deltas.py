# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Computes which rows of a full checkpoint and its deltas a restore leaves in a table.

A restore applies deltas in order (kernels/engine/checkpoint/apply_delta.cc). The last
delta that contains a key decides its row. So this module goes through the deltas
backwards, and only the deltas' keys need to be in memory.
"""

import collections

import numpy as np

from . import errors
from . import tensor_names

_NUM_BUCKETS = 1000

# A full checkpoint's columns -> their names in a delta.
_COLUMNS = {
    tensor_names.KEYS: tensor_names.DELTA_KEYS,
    tensor_names.VALUES: tensor_names.DELTA_VALUES,
    tensor_names.VERSIONS: tensor_names.DELTA_VERSIONS,
    tensor_names.FREQS: tensor_names.DELTA_FREQS,
    tensor_names.KEYS_FILTERED: tensor_names.DELTA_KEYS_FILTERED,
    tensor_names.VERSIONS_FILTERED: tensor_names.DELTA_VERSIONS_FILTERED,
    tensor_names.FREQS_FILTERED: tensor_names.DELTA_FREQS_FILTERED,
}

# The rows of one piece of a table in a delta.
#   rows, filtered: bool arrays, which of its keys and filtered keys stay.
#   replaces: whether it replaces all previous rows of the piece.
Kept = collections.namedtuple("Kept", ["delta", "rows", "filtered", "replaces"])


def column_of(prefix, column):
  """Returns the name of a full checkpoint's column in a delta."""
  return tensor_names.tensor(prefix, _COLUMNS[column])


def is_among(keys, sorted_keys):
  """Returns a bool array: which keys are in a sorted array."""
  if not len(sorted_keys):
    return np.zeros(len(keys), bool)
  at = np.searchsorted(sorted_keys, keys)
  return sorted_keys[np.minimum(at, len(sorted_keys) - 1)] == keys


def order(keys):
  """Returns the permutation of keys into the order of a full checkpoint."""
  return np.lexsort((keys, keys % _NUM_BUCKETS))


def offsets(keys):
  """Returns where each bucket starts, int32 `[1001]`; keys must be in that order."""
  return np.searchsorted(keys % _NUM_BUCKETS, np.arange(_NUM_BUCKETS + 1)).astype(np.int32)


class Later(object):
  """The keys that deltas change, compared with everything saved before them."""

  def __init__(self):
    self._mentioned = np.zeros([0], np.int64)
    self._replaced = []  # (function: keys -> parts, bool array: parts that are replaced)

  def mention(self, keys):
    """Records keys that a delta inserts, overwrites, counts or erases."""
    self._mentioned = np.union1d(self._mentioned, keys.astype(np.int64))

  def replace(self, part_of, parts):
    """Records that a delta replaces all keys of some parts."""
    self._replaced.append((part_of, np.array(parts, bool)))

  def stay(self, keys):
    """Returns a bool array: which keys no delta has changed or removed."""
    gone = is_among(keys, self._mentioned)
    for part_of, parts in self._replaced:
      gone |= parts[part_of(keys)]
    return ~gone


def merge(name, prefixes, dim, deltas):
  """Decides which rows of a table's deltas stay.

  Args:
    name: string, the table's name.
    prefixes: list of the name prefixes of the table's pieces.
    dim: length of a row.
    deltas: list of `BundleReader`, in the order of the chain.

  Returns:
    (list of a list of `Kept` for each piece, in the order of the chain; the `Later`
      that decides about the rows of the full checkpoint).

  Raises:
    CheckpointError: a delta lacks the table, or its tensors do not fit; the message names
      both.
  """
  later = Later()
  kept = [[] for _ in prefixes]
  for delta in reversed(deltas):
    placement = _placement(name, len(prefixes), delta)

    def part_of(keys, placement=placement):
      if placement is None:
        return keys % _NUM_BUCKETS % len(prefixes)
      return placement[keys % len(placement)]

    replaces = [False] * len(prefixes)
    for i in reversed(range(len(prefixes))):
      _check(name, prefixes[i], dim, delta)

      def read(column, i=i):
        keys = delta.read(tensor_names.tensor(prefixes[i], column))
        # A rank may have rows of keys that it does not own.
        is_own = np.ones(len(keys), bool) if placement is None else part_of(keys) == i
        return keys, is_own

      keys, own = read(tensor_names.DELTA_KEYS)
      filtered, own_filtered = read(tensor_names.DELTA_KEYS_FILTERED)
      erased, own_erased = read(tensor_names.DELTA_ERASED_KEYS)
      replaces[i] = bool(
          delta.read(tensor_names.tensor(prefixes[i], tensor_names.DELTA_REPLACES))[0])
      kept[i].insert(0, Kept(
          delta, own & later.stay(keys),
          own_filtered & later.stay(filtered) & ~is_among(filtered, np.sort(keys[own])),
          replaces[i]))
      later.mention(np.concatenate([keys[own], filtered[own_filtered], erased[own_erased]]))
    if any(replaces):
      later.replace(part_of, replaces)
  return kept, later


def _placement(name, parts, delta):
  """Returns the part of each key, an int64 array; None: not spread over ranks."""
  tensor = tensor_names.tensor(name, tensor_names.DELTA_PLACEMENT)
  if tensor not in delta.shapes:
    return None
  placement = delta.read(tensor)
  if placement.ndim != 1 or not len(placement) or placement.dtype != np.int64 or (
      placement.min() < 0 or placement.max() >= parts):
    raise errors.CheckpointError(
        "incremental checkpoint %s: tensor '%s': expected int64 entries in [0, %d), got %s" %
        (delta.prefix, tensor, parts, placement.tolist()[:5]))
  return placement


def _check(name, prefix, dim, delta):
  """Raises unless a delta has all of a piece, in shapes that fit."""
  n = delta.shapes.get(tensor_names.tensor(prefix, tensor_names.DELTA_KEYS))
  m = delta.shapes.get(tensor_names.tensor(prefix, tensor_names.DELTA_KEYS_FILTERED), [0])
  if n is None:
    raise errors.CheckpointError(
        "incremental checkpoint %s has no tensors '%s' of the variable '%s', which its "
        "full checkpoint has" %
        (delta.prefix, tensor_names.tensor(prefix, tensor_names.DELTA_KEYS), name))
  columns = [
      (tensor_names.DELTA_KEYS, [[None]]),
      (tensor_names.DELTA_VALUES, [n + [dim]]),
      (tensor_names.DELTA_VERSIONS, [n, [0]]),
      (tensor_names.DELTA_FREQS, [n, [0]]),
      (tensor_names.DELTA_ERASED_KEYS, [[None]]),
      (tensor_names.DELTA_REPLACES, [[1]]),
      (tensor_names.DELTA_KEYS_FILTERED, [[None]]),
      (tensor_names.DELTA_VERSIONS_FILTERED, [m, [0]]),
      (tensor_names.DELTA_FREQS_FILTERED, [m, [0]]),
  ]
  for tensor in tensor_names.TABLE_TENSORS:
    # Deltas of earlier versions do not have all of them.
    if tensor_names.tensor(prefix, tensor.delta) in delta.shapes:
      sizes = [dim if size == tensor_names.DIM else size for size in tensor.shape]
      columns.append(
          (tensor.delta, [sizes, [0] + sizes[1:]] if tensor.fixed else [sizes]))
  for column, allowed in columns:
    tensor = tensor_names.tensor(prefix, column)
    shape = delta.shapes.get(tensor)
    if shape is None or not any(
        len(shape) == len(want) and all(w in (None, s) for w, s in zip(want, shape))
        for want in allowed):
      raise errors.CheckpointError(
          "incremental checkpoint %s: tensor '%s': expected the shape %s, got %s" %
          (delta.prefix, tensor, str(allowed[0]).replace("None", "N"),
           "no such tensor" if shape is None else shape))

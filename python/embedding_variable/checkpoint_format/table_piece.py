# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A `-keys` tensor with its columns: a whole table of a checkpoint, or a part of one."""

import collections

import numpy as np

from . import errors
from . import merged_deltas
from . import tensor_names

_OFFSETS = (tensor_names.OFFSETS, tensor_names.OFFSETS_FILTERED)


class Piece(object):
  """Columns of a full checkpoint, or of it and its deltas.

  Attributes:
    prefix: string, name prefix of its tensors.
    slots: ordered dict: slot name -> name prefix of the slot's tensors.
  """

  def __init__(self, full, prefix):
    """Args: full, `BundleReader` of the full checkpoint; prefix, string."""
    self.prefix = prefix
    self.slots = collections.OrderedDict()
    self._full = full
    self._kept, self._later = [], None
    self._layout = (None, None, None)  # the last one that was computed

  def merge(self, kept, later):
    """Adds the deltas' changes to the piece.

    Args:
      kept: list of `merged_deltas.Kept`, in the order of the chain.
      later: `merged_deltas.Later` of the whole chain.
    """
    self._kept, self._later = kept, later

  def tensor(self, column):
    """Returns the name of one of its own tensors, not a slot's."""
    return tensor_names.tensor(self.prefix, column)

  def prefixes(self):
    """Returns the name prefixes of the table and of the slots."""
    return [self.prefix] + list(self.slots.values())

  def read(self, prefix, column):
    """Reads a column.

    Rows are in the order of the full checkpoint. With deltas they are in the defined
    order of a full checkpoint, (floormod(key, 1000), key).

    Args:
      prefix: string, one of `prefixes()`.
      column: name of one of `tensor_names.COLUMNS`.

    Returns:
      NumPy array; None if it was not recorded (no tensor, or an empty one although
        there are keys).

    Raises:
      CheckpointError: a file is damaged, or rows of a slot have different lengths.
    """
    if self._later is None or tensor_names.tensor(prefix, column) not in self._full.shapes:
      return self._read_full(prefix, column)
    if column in _OFFSETS:
      return merged_deltas.offsets(self._read_merged(prefix, _keys_of(column)))
    return self._read_merged(prefix, column)

  def of_full(self, with_rows):
    """Returns the full checkpoint's (keys, rows or None) that deltas leave, in its order."""
    keys = self._full.read(self.tensor(tensor_names.KEYS))
    rows = self._full.read(self.tensor(tensor_names.VALUES)) if with_rows else None
    if not self._kept:
      return keys, rows
    stay = self._later.stay(keys)
    return keys[stay], rows[stay] if with_rows else None

  def of_delta(self, number, with_rows):
    """Returns a delta's (keys, rows or None) that later ones leave; number: from 0."""
    kept = self._kept[number]
    keys, rows = (kept.delta.read(self.tensor(column)) if wanted else None
                  for column, wanted in ((tensor_names.DELTA_KEYS, True),
                                         (tensor_names.DELTA_VALUES, with_rows)))
    return keys[kept.rows], rows[kept.rows] if with_rows else None

  def table_tensor(self, tensor):
    """Reads one of `tensor_names.TABLE_TENSORS`; None if the files do not have it."""
    name = self.tensor(tensor.delta)
    for kept in reversed(self._kept):
      if (kept.replaces or not tensor.fixed) and all(kept.delta.shapes.get(name, [0])):
        return kept.delta.read(name)
    name = self.tensor(tensor.name)
    return self._full.read(name) if name in self._full.shapes else None

  def count(self, keys):
    """Returns the number of keys; `keys` is `tensor_names.KEYS` or `KEYS_FILTERED`."""
    if self._later is None or self.tensor(keys) not in self._full.shapes:
      return self._full.shapes.get(self.tensor(keys), [0])[0]
    stay, _ = self._layout_of(self.prefix, keys)
    return int(sum(np.count_nonzero(s) for s in stay))

  def _read_full(self, prefix, column):
    tensor, shapes = tensor_names.tensor(prefix, column), self._full.shapes
    if tensor not in shapes:
      return None
    if column not in _OFFSETS and (
        shapes[tensor][0] < shapes[tensor_names.tensor(prefix, _keys_of(column))][0]):
      return None
    return self._full.read(tensor)

  def _read_merged(self, prefix, column):
    is_filtered = column in tensor_names.FILTERED
    if is_filtered:
      # Deltas store filtered keys once: a slot has those of its table.
      prefix = self.prefix
    stay, order = self._layout_of(prefix, _keys_of(column))
    rows = [self._read_full(prefix, column)]
    tensor = merged_deltas.column_of(prefix, column)
    for kept in self._kept:
      stored = len(kept.filtered if is_filtered else kept.rows)
      is_recorded = kept.delta.shapes.get(tensor, [-1])[0] == stored
      rows.append(kept.delta.read(tensor) if is_recorded else None)
    if any(r is None for r in rows):
      return None
    if len({r.shape[1:] for r in rows}) > 1:
      raise errors.CheckpointError(
          "'%s' has rows of different lengths in %s and its incremental checkpoints: %s" %
          (tensor_names.tensor(prefix, column), self._full.prefix,
           [list(r.shape[1:]) for r in rows]))
    return np.concatenate([r[s] for r, s in zip(rows, stay)])[order]

  def _layout_of(self, prefix, keys_column):
    """Returns (which rows of the full checkpoint and of each delta stay, their order)."""
    if self._layout[0] != (prefix, keys_column):
      keys = [self._read_full(prefix, keys_column)]
      stay = [self._later.stay(keys[0])]
      for kept in self._kept:
        keys.append(kept.delta.read(merged_deltas.column_of(self.prefix, keys_column)))
        stay.append(kept.filtered if keys_column == tensor_names.KEYS_FILTERED else
                    kept.rows)
      order = merged_deltas.order(np.concatenate([k[s] for k, s in zip(keys, stay)]))
      self._layout = (prefix, keys_column), stay, order
    return self._layout[1:]


def _keys_of(column):
  """Returns the column with the keys of the rows of a column."""
  is_filtered = column in tensor_names.FILTERED or column == tensor_names.OFFSETS_FILTERED
  return tensor_names.KEYS_FILTERED if is_filtered else tensor_names.KEYS

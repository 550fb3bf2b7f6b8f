# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model's files of rows as folders that the parameter server loads."""

import os

import numpy as np

import embedding_variable

from hugectr.training import sparse_files

# Stands for a key that `Numbered` cannot represent; no row has it.
_NONE = np.int64(np.iinfo(np.int64).max)


class Numbered(object):
  """Makes keys of different slots differ: key * slots + slot.

  Args:
    slots: int, number of slots.
  """

  def __init__(self, slots):
    self._slots = slots
    self._limit = np.iinfo(np.int64).max // slots - 1

  def holds(self, keys):
    """Returns whether all keys can be represented."""
    return not len(keys) or (keys.min() >= -self._limit and keys.max() <= self._limit)

  def of_rows(self, keys, slots):
    """Returns the keys of rows, all of which `holds`."""
    return keys * self._slots + slots

  def of_batch(self, keys, splits):
    """Returns a batch's keys; one that cannot be represented has no row.

    Args:
      keys: int64 [N].
      splits: int64 [samples * slots + 1], sample by sample.
    """
    slots = np.repeat(np.arange(len(splits) - 1) % self._slots, np.diff(splits))
    fits = (keys >= -self._limit) & (keys <= self._limit)
    return np.where(fits, np.where(fits, keys, 0) * self._slots + slots, _NONE)


def _rows_of_folder(path, embedding):
  """Returns the number of rows of a folder; raises ValueError for other sizes of files."""
  sizes = {name: os.path.getsize(os.path.join(path, name))
           for name in ("key", sparse_files.VECTOR)}
  floats = embedding.vec_size
  if sizes["key"] % 8 or sizes[sparse_files.VECTOR] != sizes["key"] // 8 * 4 * floats:
    raise ValueError(
        "%s: embedding '%s' has rows of %d floats, expected %d bytes in %s for %d bytes of "
        "keys, got %d" % (path, embedding.name, floats, sizes["key"] // 8 * 4 * floats,
                          sparse_files.VECTOR, sizes["key"], sizes[sparse_files.VECTOR]))
  return sizes["key"] // 8


def _slots_of_folder(path, count):
  """Returns (keys, slots) of a folder, or None if it has no slots; raises ValueError."""
  if not os.path.exists(os.path.join(path, "slot_id")):
    return None
  keys, slots = (np.fromfile(os.path.join(path, name), "<i8") for name in ("key", "slot_id"))
  if len(slots) != count:
    raise ValueError("%s: %d keys and %d slot ids" % (path, count, len(slots)))
  return keys, slots


def _are_distinct(keys):
  return not (np.diff(np.sort(keys)) == 0).any()


def served(path, embedding, has_i64_keys, folder):
  """Returns (path of a folder that the server loads, Numbered or None).

  The folder is the given one, unless rows are in a flat file, or a key has rows in several
  slots; then all rows are copied.

  Args:
    path: string, a folder or a flat file of rows.
    embedding: the config's Embedding.
    has_i64_keys: bool, whether a flat file's keys have 8 bytes.
    folder: string, where a new folder is written.

  Raises:
    ValueError: the rows are of another embedding, or there are none.
    OSError: the files cannot be read.
  """
  path = sparse_files.current(path)
  is_folder, slot_num = os.path.isdir(path), embedding.bottom.slot_num
  rows = None
  if is_folder:
    count = _rows_of_folder(path, embedding)
    # Keys of one slot are distinct, and a large table's are not read twice.
    in_slots = _slots_of_folder(path, count) if slot_num > 1 else None
  else:
    rows = sparse_files.read(path, 8 if has_i64_keys else 4, embedding.bottom.is_localized,
                             embedding.vec_size, [sparse_files.VECTOR])
    count = len(rows.keys)
    in_slots = None if rows.slots is None else (rows.keys, rows.slots)
  if not count:
    raise ValueError("%s: embedding '%s' has no rows: train first" % (path, embedding.name))
  numbered = None
  if in_slots is not None and not _are_distinct(in_slots[0]):
    keys, slots = in_slots
    if slots.min() < 0 or slots.max() >= slot_num:
      raise ValueError("%s: slot ids %d to %d, but embedding '%s' has %d slots" %
                       (path, slots.min(), slots.max(), embedding.name, slot_num))
    numbered = Numbered(slot_num)
    if not numbered.holds(keys):
      raise ValueError("%s: embedding '%s': keys of several slots: expected values within "
                       "+-2^63 / %d, got %d to %d" % (path, embedding.name, slot_num, keys.min(),
                                         keys.max()))
  if is_folder and numbered is None:
    return os.path.abspath(path), None
  if rows is None:
    rows = sparse_files.read(path, 8, False, embedding.vec_size, [sparse_files.VECTOR])
  keys = rows.keys if numbered is None else numbered.of_rows(*in_slots)
  embedding_variable.table_directories.write_pieces(folder, [(keys, rows.arrays[0])])
  return folder, numbered

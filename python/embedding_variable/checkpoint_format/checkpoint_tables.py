# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds the embedding variables among a checkpoint's tensors, and reads them.

A table is recognised only by the names of its tensors (tensor_names.py).
"""

import collections
import json

import numpy as np
import tensorflow as tf

from . import bundle_reader
from . import delta_chain
from . import errors
from . import interrupted
from . import merged_deltas
from . import names
from . import table_piece
from . import tensor_names


class Table(object):
  """One embedding variable of a checkpoint.

  Attributes:
    name: string, the variable's name.
    pieces: list of `Piece`, in order of their parts.
    unmerged: the same; reading them may omit the deltas.
    slots: list of slot names, the same for all pieces unless the file is damaged.
    dim: length of a row.
    nbytes: int, bytes of all its tensors, those in deltas included.
    tensors: list of names of its tensors in the full checkpoint.
  """

  def __init__(self, full, deltas, name, pieces):
    self._full = full
    self._deltas = deltas
    self._is_merged = not deltas
    self.name = name
    self.unmerged = pieces
    self.slots = sorted({slot for piece in pieces for slot in piece.slots})
    dims = {full.shapes[p.tensor(tensor_names.VALUES)][1] for p in pieces}
    if len(dims) > 1:
      raise errors.CheckpointError("variable '%s': its parts have rows of different "
                                   "lengths: %s" % (name, sorted(dims)))
    self.dim, = dims
    columns = [c.name for c in tensor_names.COLUMNS + tensor_names.TABLE_TENSORS]
    prefixes = [prefix for piece in pieces for prefix in piece.prefixes()]
    self.tensors = _existing(full, prefixes, columns)
    self.nbytes = sum(full.nbytes(t) for t in self.tensors) + sum(
        delta.nbytes(t) for delta in deltas
        for t in _existing(delta, prefixes, tensor_names.DELTA_COLUMNS))

  @property
  def unsure(self):
    """Name prefixes of slots that may be tables: the files have no default rows."""
    return [slot for piece in self.unmerged for slot in piece.slots.values()
            if piece.tensor(tensor_names.DEFAULT_ROWS.name) not in self._full.shapes]

  @property
  def pieces(self):
    if not self._is_merged:
      prefixes = [piece.prefix for piece in self.unmerged]
      kept, later = merged_deltas.merge(self.name, prefixes, self.dim, self._deltas)
      for piece, its in zip(self.unmerged, kept):
        piece.merge(its, later)
      self._is_merged = True
    return self.unmerged

  @property
  def rows(self):
    """Number of keys."""
    return sum(piece.count(tensor_names.KEYS) for piece in self.pieces)

  @property
  def filtered(self):
    """Number of keys that are not admitted yet."""
    return sum(piece.count(tensor_names.KEYS_FILTERED) for piece in self.pieces)

  @property
  def key_dtype(self):
    """NumPy's dtype of the keys."""
    return self._full.dtype(self.unmerged[0].tensor(tensor_names.KEYS))

  def column(self, column, slot=None):
    """Reads a column of all pieces, one after the other.

    Args:
      column: name of one of `tensor_names.COLUMNS`.
      slot: slot name, or None for the table itself.

    Returns:
      `[rows]` or `[rows, dim]`; None if it was not recorded (no tensor, or an empty one
        although there are keys).
    """
    found = []
    for piece in self.pieces:
      if slot is not None and slot not in piece.slots:
        return None
      found.append(piece.read(piece.prefix if slot is None else piece.slots[slot], column))
      if found[-1] is None:
        return None
    return np.concatenate(found)

  def pieces_of_rows(self, with_rows=True):
    """Yields (keys, `[n, dim]` rows) as a restore leaves them, each key once.

    Needs memory for one tensor of one file, and for the deltas' keys.

    Args:
      with_rows: bool; False: rows are None.
    """
    for piece in self.pieces:
      yield piece.of_full(with_rows)
    for number in range(len(self._deltas)):
      for piece in self.pieces:
        yield piece.of_delta(number, with_rows)

  def slot_values(self, slot, keys):
    """Reads a slot's rows in the order of `keys`.

    A slot has its own copy of the keys, which may be in another order or lack some
    (DeepRec takes a separate snapshot for each slot).

    Args:
      slot: slot name.
      keys: the table's keys, `column(tensor_names.KEYS)`.

    Returns:
      `[rows, slot dim]`; NaN where the slot has no row for a key. None if a piece lacks
        the slot.
    """
    own = self.column(tensor_names.KEYS, slot)
    values = self.column(tensor_names.VALUES, slot)
    if own is None or values is None or values.ndim != 2:
      return None
    if np.array_equal(own, keys):
      return values
    positions, found = positions_of(keys, own)
    result = np.full([len(keys), values.shape[1]], np.nan, values.dtype)
    result[found] = values[positions[found]]
    return result

  def default_row(self, key):
    """Returns (R, float32 `[dim]`): the default row that an absent key reads.

    None if the file has no default rows (DeepRec's).
    """
    rows = self._default_rows_of(key % 1000 % len(self.pieces))
    return None if rows is None else (key % len(rows), rows[key % len(rows)])

  def default_rows(self, keys):
    """Returns float32 `[n, dim]`, the default rows that absent keys read; None as above."""
    # The part in which a partitioner puts a key. Ranks place keys differently, but all
    # have the same default rows.
    parts = keys % 1000 % len(self.pieces)
    found = np.empty([len(keys), self.dim], np.float32)
    for part in range(len(self.pieces)):
      rows = self._default_rows_of(part)
      if rows is None:
        return None
      found[parts == part] = rows[keys[parts == part] % len(rows)]
    return found

  def _default_rows_of(self, part):
    """Returns the default rows of a part, or of the next one that has them."""
    for piece in self.pieces[part:] + self.pieces[:part]:
      rows = piece.table_tensor(tensor_names.DEFAULT_ROWS)
      if rows is not None and len(rows):
        return rows
    return None


def _existing(bundle, prefixes, columns):
  """Returns the names of those tensors that a `BundleReader` has."""
  possible = [tensor_names.tensor(p, c) for p in prefixes for c in columns]
  return [t for t in possible if t in bundle.shapes]


def positions_of(some_keys, keys):
  """Finds keys among keys.

  Args:
    some_keys: `[M]` integers.
    keys: `[N]` integers, distinct.

  Returns:
    (positions `[M]` in `keys`, bool `[M]`: whether the key was found); the position is
      undefined if it was not.
  """
  if not len(keys):
    return np.zeros(len(some_keys), np.int64), np.zeros(len(some_keys), bool)
  order = np.argsort(keys, kind="stable")
  at = np.searchsorted(keys, some_keys, sorter=order)
  positions = order[np.minimum(at, len(keys) - 1)]
  return positions, keys[positions] == some_keys


class Checkpoint(object):
  """A stock V2 checkpoint with the incremental checkpoints that a restore applies.

  Attributes:
    prefix: string.
    name: string, the prefix and the deltas that are read: "m.ckpt-9 and its deltas to
      12".
    num_deltas: int, how many are read.
    tables: ordered dict: variable name -> `Table`, by name.
    others: list of names of the tensors that belong to no table.
  """

  def __init__(self, path, full_only=False, deltas=None):
    """Opens a checkpoint.

    Args:
      path: a checkpoint's prefix, its `.index` file, or a directory, which stands for
        its newest checkpoint.
      full_only: bool. False: with the deltas that `tf.train.Saver().restore` applies,
        which are those of the newest full checkpoint of a directory; every delta is
        read and checked. True: without deltas.
      deltas: list of strings, the prefixes of the deltas in place of those; not checked.

    Raises:
      CheckpointError: it does not exist, it or a delta cannot be read, or a delta is missing
        or continues another checkpoint.
    """
    self.prefix = _prefix_of(path)
    self._full = bundle_reader.BundleReader(self.prefix, interrupted.readable(self.prefix))
    if deltas is not None:
      deltas = [bundle_reader.BundleReader(prefix, prefix) for prefix in deltas]
    else:
      deltas = [] if full_only else _deltas_of(self.prefix)
    self.num_deltas = len(deltas)
    self.name = self.prefix + _text_of(deltas)
    self.tables = collections.OrderedDict(
        (name, Table(self._full, deltas, name, pieces))
        for name, pieces in sorted(_pieces(self._full).items()))
    known = {t for table in self.tables.values() for t in table.tensors}
    self.others = sorted(set(self._full.shapes) - known)
    # Every delta has all other variables; a restore uses those of the last.
    self._last = deltas[-1] if deltas else self._full

  def _bundle_of(self, other):
    """Returns the `BundleReader` from which one of `others` is read."""
    return self._last if other in self._last.shapes else self._full

  def shape(self, other):
    """Returns the shape of one of `others`, a list of ints."""
    return self._bundle_of(other).shapes[other]

  def dtype(self, other):
    """Returns NumPy's dtype of one of `others`."""
    return self._bundle_of(other).dtype(other)

  def nbytes(self, other):
    """Returns the bytes of one of `others` (0 for strings)."""
    return self._bundle_of(other).nbytes(other)

  def read(self, other):
    """Reads one of `others` as a NumPy array; CheckpointError: the file is damaged."""
    return self._bundle_of(other).read(other)

  def unsure(self):
    """Returns names taken for slots although the checkpoint leaves it open."""
    return sorted(slot for table in self.tables.values() for slot in table.unsure)

  def slot_rows(self, prefix):
    """Returns a list with the (keys, rows) of a slot, or None.

    Args:
      prefix: string, name prefix of the slot's tensors.

    Raises:
      CheckpointError: deltas are read, which would have to be merged.
    """
    if not any(prefix in piece.slots.values() for table in self.tables.values()
               for piece in table.unmerged):
      return None
    if self.num_deltas:
      raise errors.CheckpointError(
          "%s: '%s' is an optimizer's slot, which can only be read without incremental "
          "checkpoints (full_only=True, --full-only)" % (self.prefix, prefix))
    return [tuple(self._full.read(tensor_names.tensor(prefix, column))
                  for column in (tensor_names.KEYS, tensor_names.VALUES))]

  def table(self, name):
    """Returns the table with that name, or the only one that `names.matching` finds.

    Raises:
      CheckpointError: there is none, or there are several; the message names some.
    """
    found = names.matching(name, self.tables)
    if len(found) > 1:
      raise errors.CheckpointError("%s: '%s' may be any of %d embedding variables: %s" %
                                   (self.prefix, name, len(found), names.listed(found)))
    if not found:
      near = names.close(name, self.tables)
      raise errors.CheckpointError(
          "%s has no embedding variable '%s'; %s" %
          (self.prefix, name,
           "did you mean %s?" % names.listed(near) if near else
           "it has %s" % (names.listed(sorted(self.tables, key=names.natural)) or
                          "none at all")))
    return self.tables[found[0]]

  def global_step(self):
    """Returns the global step as an int, or None if the file has none."""
    if "global_step" not in self.others or self.shape("global_step") != []:
      return None
    return int(self.read("global_step"))


def _deltas_of(prefix):
  """Returns a `BundleReader` for each delta that a restore of a checkpoint applies."""
  try:
    if not delta_chain.is_newest(prefix):
      return []
    links = delta_chain.find(prefix, may_write=False)
  except tf.errors.OpError as e:
    raise errors.CheckpointError(
        "%s (full_only=True, --full-only: reads the full checkpoint alone)" % e.message)
  return [bundle_reader.BundleReader(link.prefix, link.prefix) for link in links]


def _text_of(deltas):
  """Returns the part of a checkpoint's name that describes its deltas."""
  if not deltas:
    return ""
  step = json.loads(deltas[-1].read(delta_chain.INFO).decode()).get("global_step")
  return (" and its %d deltas" % len(deltas) if step is None else
          " and its deltas to %s" % step)


def _prefix_of(path):
  """Converts a user's path to a checkpoint prefix."""
  if path.endswith(".index"):
    path = path[:-len(".index")]
  if tf.io.gfile.isdir(path):
    try:
      newest = tf.train.latest_checkpoint(path)
    except UnicodeDecodeError as e:
      raise errors.CheckpointError("the file 'checkpoint' of the directory %s cannot be read: %s"
                                   % (path, e))
    if newest is None:
      raise errors.CheckpointError("the directory %s has no checkpoint (its file "
                                   "'checkpoint' names no existing one)" % path)
    return newest
  if not tf.io.gfile.exists(interrupted.index_of(path)):
    raise errors.CheckpointError("no checkpoint at %s (there is no %s.index)" %
                                 (path, path))
  return path


def _pieces(full):
  """Returns a dict: variable name -> list of `Piece`.

  Args:
    full: `BundleReader`.
  """
  shapes = full.shapes
  prefixes = set()
  for name in shapes:
    prefix = tensor_names.without_column(name, tensor_names.KEYS)
    if prefix is None:
      continue
    values = shapes.get(tensor_names.tensor(prefix, tensor_names.VALUES))
    if values is not None and len(values) == 2 and len(shapes[name]) == 1:
      prefixes.add(prefix)
  found = {}
  for prefix in sorted(prefixes):  # sorted, so a table precedes the names under it
    owner = next((a for a in _ancestors(prefix) if a in found), None)
    if owner is None or _is_table(prefix, owner, prefixes, shapes):
      found[prefix] = table_piece.Piece(full, prefix)
    else:
      found[owner].slots[prefix[len(owner) + 1:]] = prefix
  tables = {}
  for prefix, piece in found.items():
    name, part = tensor_names.split_part(prefix)
    tables.setdefault(name, []).append((part or 0, piece))
  return {
      name: [piece for _, piece in sorted(parts, key=lambda p: p[0])]
      for name, parts in tables.items()
  }


def _is_table(prefix, owner, prefixes, shapes):
  """Returns whether a name under a table's name is a table, not a slot.

  Args:
    prefix: string, the name.
    owner: string, the table's name.
    prefixes: set of all names of tables and slots.
    shapes: dict: tensor name -> shape.
  """
  has_rows = [tensor_names.tensor(p, tensor_names.DEFAULT_ROWS.name) in shapes
              for p in (prefix, owner)]
  if any(has_rows):
    # A table has its own default rows, a slot has none.
    return has_rows[0]
  # From DeepRec, without default rows: slots have no slots.
  return any(p.startswith(prefix + "/") for p in prefixes)


def _ancestors(name):
  """Yields the names above a name, the nearest first."""
  while "/" in name:
    name = name.rpartition("/")[0]
    yield name

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds the embedding variables among a checkpoint's tensors, and reads them.

A table is recognised by the names of its tensors alone (checkpoint/tensor_names.py).
"""

import collections
import os

import numpy as np
from tensorflow.python.framework import errors as tf_errors
from tensorflow.python.training import checkpoint_management
from tensorflow.python.training import checkpoint_utils

from embedding_variable.checkpoint import bundle_sizes
from embedding_variable.checkpoint import durable
from embedding_variable.checkpoint import tensor_names
from embedding_variable.tools import errors
from embedding_variable.tools import names


class Piece(object):
  """One `-keys` with its columns: a whole table, or one part of one.

  Attributes:
    prefix: string, what its tensors' names start with.
    slots: ordered dict: slot name -> what the slot's tensors' names start with.
  """

  def __init__(self, prefix):
    self.prefix = prefix
    self.slots = collections.OrderedDict()

  def tensor(self, column):
    """Returns the name of one of its own tensors, not a slot's."""
    return tensor_names.tensor(self.prefix, column)

  def prefixes(self):
    """Returns the prefix and those of the slots."""
    return [self.prefix] + list(self.slots.values())


class Table(object):
  """One embedding variable of a checkpoint.

  Attributes:
    name: string, the variable's name.
    pieces: list of `Piece`, in order of their parts.
    slots: list of slot names, the same for all pieces unless the file is damaged.
    rows, filtered: number of keys, and of keys that were not admitted yet.
    dim: length of a row.
    nbytes: int, bytes of all its tensors.
  """

  def __init__(self, checkpoint, name, pieces):
    self._checkpoint = checkpoint
    self.name = name
    self.pieces = pieces
    self.slots = sorted({slot for piece in pieces for slot in piece.slots})
    shapes = checkpoint.shapes
    self.rows = sum(shapes[p.tensor(tensor_names.KEYS)][0] for p in pieces)
    self.filtered = sum(
        shapes.get(p.tensor(tensor_names.KEYS_FILTERED), [0])[0] for p in pieces)
    dims = {shapes[p.tensor(tensor_names.VALUES)][1] for p in pieces}
    if len(dims) > 1:
      raise errors.ToolError("variable '%s': its parts have rows of different "
                             "lengths: %s" % (name, sorted(dims)))
    self.dim, = dims
    columns = [c.name for c in tensor_names.COLUMNS] + [tensor_names.DEFAULT_ROWS]
    possible = [
        tensor_names.tensor(prefix, column) for piece in pieces
        for prefix in piece.prefixes() for column in columns
    ]
    self.tensors = [t for t in possible if t in shapes]
    self.nbytes = sum(checkpoint.nbytes(t) for t in self.tensors)

  @property
  def key_dtype(self):
    """NumPy's dtype of the keys."""
    return self._checkpoint.dtype(self.pieces[0].tensor(tensor_names.KEYS))

  def column(self, column, slot=None):
    """Reads a column of all pieces, one after the other.

    Args:
      column: name of one of `tensor_names.COLUMNS`.
      slot: slot name, or None for the table itself.

    Returns:
      `[rows]` or `[rows, dim]`; None when it was not recorded (no tensor, or an empty
      one beside keys).
    """
    own_keys = (tensor_names.KEYS_FILTERED if column in tensor_names.FILTERED else
                tensor_names.KEYS)
    found = []
    for piece in self.pieces:
      prefix = piece.prefix if slot is None else piece.slots.get(slot)
      tensor = tensor_names.tensor(prefix, column)
      keys = tensor_names.tensor(prefix, own_keys)
      shapes = self._checkpoint.shapes
      if tensor not in shapes or shapes[tensor][0] < shapes[keys][0]:
        return None
      found.append(self._checkpoint.read(tensor))
    return np.concatenate(found)

  def slot_values(self, slot, keys):
    """Reads a slot's rows in the order of `keys`.

    A slot has its own copy of the keys, which may be in another order, or lack some
    (DeepRec takes a snapshot for each).

    Args:
      slot: slot name.
      keys: the table's keys, `column(tensor_names.KEYS)`.

    Returns:
      `[rows, slot dim]`; NaN where the slot has no row for a key. None when a piece
      lacks the slot.
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

    None when the file has none (DeepRec's).
    """
    # As a partitioner deals keys out. Ranks deal otherwise, but all have the same rows.
    at = key % 1000 % len(self.pieces)
    for piece in self.pieces[at:] + self.pieces[:at]:
      tensor = piece.tensor(tensor_names.DEFAULT_ROWS)
      if self._checkpoint.shapes.get(tensor, [0])[0]:
        rows = self._checkpoint.read(tensor)
        return key % len(rows), rows[key % len(rows)]
    return None


def positions_of(wanted, keys):
  """Finds keys among keys.

  Args:
    wanted: `[M]` integers.
    keys: `[N]` integers, distinct.

  Returns:
    (positions `[M]` in `keys`, bool `[M]`: it is there); a position means nothing
    where it is not.
  """
  if not len(keys):
    return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
  order = np.argsort(keys, kind="stable")
  at = np.searchsorted(keys, wanted, sorter=order)
  positions = order[np.minimum(at, len(keys) - 1)]
  return positions, keys[positions] == wanted


class Checkpoint(object):
  """A stock V2 checkpoint.

  Attributes:
    prefix: string.
    shapes: dict: tensor name -> list of ints.
    tables: ordered dict: variable name -> `Table`, by name.
    others: list of names of the tensors that belong to no table.
  """

  def __init__(self, path):
    """Opens it.

    Args:
      path: a checkpoint's prefix, its `.index` file, or a directory, whose newest
        checkpoint is taken.

    Raises:
      ToolError: there is none, or it cannot be read.
    """
    self.prefix = _prefix_of(path)
    try:
      readable = durable.readable(self.prefix)
      self._reader = checkpoint_utils.load_checkpoint(readable)
      bundle_sizes.check(readable, self._reader)
    except (tf_errors.OpError, ValueError) as e:
      raise errors.ToolError("%s cannot be read: %s" %
                             (self.prefix, getattr(e, "message", e)))
    self.shapes = self._reader.get_variable_to_shape_map()
    self._dtypes = self._reader.get_variable_to_dtype_map()
    self.tables = collections.OrderedDict(
        (name, Table(self, name, pieces))
        for name, pieces in sorted(_pieces(self.shapes).items()))
    known = {t for table in self.tables.values() for t in table.tensors}
    self.others = sorted(set(self.shapes) - known)

  def dtype(self, tensor):
    """Returns NumPy's dtype of a tensor."""
    return np.dtype(self._dtypes[tensor].as_numpy_dtype)

  def nbytes(self, tensor):
    """Returns the bytes of a tensor (0 for strings, whose length is not listed)."""
    dtype = self.dtype(tensor)
    if dtype == object:
      return 0
    return int(np.prod(self.shapes[tensor], dtype=np.int64)) * dtype.itemsize

  def read(self, tensor):
    """Reads a tensor as a NumPy array.

    Raises:
      ToolError: the file is damaged; names the tensor.
    """
    try:
      return self._reader.get_tensor(tensor)
    except tf_errors.OpError as e:
      raise errors.ToolError("%s: tensor '%s' cannot be read: %s" %
                             (self.prefix, tensor, e.message))

  def table(self, name):
    """Returns the table of that name, or the only one that `names.matching` finds.

    Raises:
      ToolError: there is none, or there are several; names some.
    """
    found = names.matching(name, self.tables)
    if len(found) > 1:
      raise errors.ToolError("%s: '%s' may be any of %d embedding variables: %s" %
                             (self.prefix, name, len(found), names.listed(found)))
    if not found:
      near = names.close(name, self.tables)
      raise errors.ToolError(
          "%s has no embedding variable '%s'; %s" %
          (self.prefix, name,
           "did you mean %s?" % names.listed(near) if near else
           "it has %s" % (names.listed(sorted(self.tables, key=names.natural)) or
                          "none at all")))
    return self.tables[found[0]]

  def global_step(self):
    """Returns the global step as an int, or None when the file has none."""
    if self.shapes.get("global_step") != []:
      return None
    return int(self.read("global_step"))


def _prefix_of(path):
  """Returns the checkpoint prefix that a user's path means."""
  if path.endswith(".index"):
    path = path[:-len(".index")]
  if os.path.isdir(path):
    try:
      newest = checkpoint_management.latest_checkpoint(path)
    except UnicodeDecodeError as e:
      raise errors.ToolError("the file 'checkpoint' of the directory %s cannot be read: %s"
                             % (path, e))
    if newest is None:
      raise errors.ToolError("the directory %s has no checkpoint (its file "
                             "'checkpoint' names none that is there)" % path)
    return newest
  if not os.path.exists(path + ".index"):
    raise errors.ToolError("no checkpoint at %s (there is no %s.index)" %
                           (path, path))
  return path


def _pieces(shapes):
  """Returns a dict: variable name -> list of `Piece`."""
  prefixes = set()
  for name in shapes:
    prefix = tensor_names.without_column(name, tensor_names.KEYS)
    if prefix is None:
      continue
    values = shapes.get(tensor_names.tensor(prefix, tensor_names.VALUES))
    if values is not None and len(values) == 2 and len(shapes[name]) == 1:
      prefixes.add(prefix)
  found = {}
  for prefix in sorted(prefixes):  # A table comes before what is under its name.
    # A table under another table's name has default rows of its own, a slot has none.
    owner = None
    if tensor_names.tensor(prefix, tensor_names.DEFAULT_ROWS) not in shapes:
      owner = next((a for a in _ancestors(prefix) if a in found), None)
    if owner is None:
      found[prefix] = Piece(prefix)
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


def _ancestors(name):
  """Yields the names above a name, the nearest first."""
  while "/" in name:
    name = name.rpartition("/")[0]
    yield name

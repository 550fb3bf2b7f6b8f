# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads tables from a tf.train.Saver checkpoint.

An embedding variable `v` is stored as the tensors `v-keys` and `v-values`, or in parts
as `v/part_0-keys` and so on. A dense variable is one tensor of rank 2 whose row numbers
are its keys, or the slices of a partitioned one.

An optimizer's slot has tensors like those of a table, under the table's name:
`v/Adagrad-keys`. A table has `v-default_rows`, a slot has none. DeepRec's checkpoints
have no default rows at all. There, a name under a table's name counts as a table if
another name is under it, since slots have no slots; otherwise it counts as a slot.
"""

import os
import re

import numpy as np
import tensorflow as tf

from hierarchical_parameter_server.convert import bundles
from hierarchical_parameter_server.convert import deltas
from hierarchical_parameter_server.checkpoint_format import table_directories

_KEYS, _VALUES, _DEFAULTS = "-keys", "-values", "-default_rows"
_PART = re.compile(r"^(.*)/part_(\d+)$")

# Tensors of a delta: changed rows, erased keys, keys that a filter counts (they have no
# row), whether the delta replaces the whole part, and the ranks of keys.
_DELTA_KEYS, _DELTA_VALUES = "-sparse_incr_keys", "-sparse_incr_values"
_DELTA_ERASED = "-sparse_incr_erased_keys"
_DELTA_COUNTED = "-sparse_incr_keys_filtered"
_DELTA_REPLACES = "-sparse_incr_replaces"
_DELTA_PLACEMENT = "-sparse_incr_placement"
_BUCKETS = 1000

_PUNCTUATION = re.compile(r"[^0-9A-Za-z_-]")


def _stems(shapes):
  """Returns {prefix of a table's or part's tensor names: prefixes of its slots}."""
  tables = {}
  stems = sorted(name[:-len(_KEYS)] for name in shapes
                 if name.endswith(_KEYS) and name[:-len(_KEYS)] + _VALUES in shapes)
  # sorted, so a table precedes the names under it
  for number, stem in enumerate(stems):
    owner = os.path.dirname(stem)
    while owner and owner not in tables:
      owner = os.path.dirname(owner)
    is_slot = bool(owner) and stem + _DEFAULTS not in shapes
    if is_slot and owner + _DEFAULTS not in shapes:
      # From DeepRec. Names under this one come later in the list, not always directly.
      is_slot = not any(other.startswith(stem + "/") for other in stems[number + 1:])
    if is_slot:
      tables[owner].append(stem)
    else:
      tables[stem] = []
  return tables


def _tables(stems):
  """Returns {table: names of its parts, in order}."""
  found = {}
  for stem in stems:
    match = _PART.match(stem)
    table, number = (match.group(1), int(match.group(2))) if match else (stem, 0)
    found.setdefault(table, []).append((number, stem))
  return {table: [stem for _, stem in sorted(parts)] for table, parts in found.items()}


class _Later(object):
  """The keys that deltas change, compared with everything saved before them."""

  def __init__(self):
    self._mentioned = np.zeros([0], np.int64)
    self._replaced = []

  def mention(self, keys):
    self._mentioned = np.union1d(self._mentioned, keys)

  def replace(self, part_of, parts):
    self._replaced.append((part_of, np.array(parts, bool)))

  def stay(self, keys):
    """Returns a bool array: True for keys that no delta has changed or removed."""
    at = np.searchsorted(self._mentioned, keys)
    gone = np.append(self._mentioned, 0)[at] == keys
    gone &= at < len(self._mentioned)
    for part_of, parts in self._replaced:
      gone |= parts[part_of(keys)]
    return ~gone


class Checkpoint(object):
  """A checkpoint with the deltas that a restore applies.

  Attributes:
    prefix: string.
    name: string, the prefix and the deltas that are read: "m-9 and its deltas to 12".
    tables: {embedding variable: names of its parts, in order}.
  """

  def __init__(self, source, full_only=False):
    """Opens a checkpoint.

    Args:
      source: prefix, or a folder, which stands for its newest checkpoint.
      full_only: bool; True: without deltas.

    Raises:
      ValueError: there is no such checkpoint, or a delta is missing, damaged or
        continues another checkpoint.
    """
    self.prefix = source
    if tf.io.gfile.isdir(source):
      self.prefix = tf.train.latest_checkpoint(source) or source
    try:
      self._reader = bundles.open_bundle(self.prefix)
    except (tf.errors.OpError, ValueError) as e:
      raise ValueError("%s: cannot be read as a checkpoint: %s" % (self.prefix, e))
    self._deltas = [] if full_only else deltas.of_checkpoint(self.prefix)
    self.name = self.prefix
    if self._deltas:
      self.name += " and " + deltas.end_of(self._deltas)
    self._shapes = self._reader.get_variable_to_shape_map()
    self._stems = _stems(self._shapes)
    self.tables = _tables(self._stems)

  def unsure(self):
    """Returns names taken for slots although the checkpoint leaves it open."""
    return [slot for stem, slots in sorted(self._stems.items()) for slot in slots
            if stem + _DEFAULTS not in self._shapes]

  def parts_of(self, table):
    """Returns the names of the parts of a table or a slot; None if it does not exist.
    """
    slots = _tables(slot for slots in self._stems.values() for slot in slots)
    return self.tables.get(table, slots.get(table))

  def width(self, table):
    """Returns the length of a table's rows."""
    return self._shapes[self.parts_of(table)[0] + _VALUES][1]

  def pieces(self, table, with_rows=True):
    """Yields a table's (keys, rows [n, width]) as a restore leaves them, each key once.

    Args:
      table: string, one of `tables`; without deltas also the name of a slot.
      with_rows: bool; False: rows are None.

    Raises:
      ValueError: a delta lacks the table, or its rows have another length.
    """
    parts = self.parts_of(table)
    if self._deltas and table not in self.tables:
      raise ValueError(
          "%s: '%s' is an optimizer's slot, which can only be read without incremental "
          "checkpoints (full_only=True, --full-only)" % (self.prefix, table))
    later, changed = _Later(), []
    for delta in reversed(self._deltas):
      changed = self._changed(table, parts, delta, later) + changed
    for stem in parts:
      keys = table_directories.as_keys(self._reader.get_tensor(stem + _KEYS), stem)
      rows = self._reader.get_tensor(stem + _VALUES) if with_rows else None
      if self._deltas:
        stay = later.stay(keys)
        keys, rows = keys[stay], rows[stay] if with_rows else None
      yield keys, rows
    for delta, stem, stay in changed:
      keys = table_directories.as_keys(delta.reader.get_tensor(stem + _DELTA_KEYS), stem)
      rows = delta.reader.get_tensor(stem + _DELTA_VALUES)[stay] if with_rows else None
      yield keys[stay], rows

  def _changed(self, table, parts, delta, later):
    """Adds a delta to `later`; returns its (delta, part, bool array of keys that stay).
    """
    shapes = delta.reader.get_variable_to_shape_map()
    placement = None
    if table + _DELTA_PLACEMENT in shapes:
      placement = delta.reader.get_tensor(table + _DELTA_PLACEMENT)
      if placement.ndim != 1 or not len(placement) or not (
          0 <= placement.min() and placement.max() < len(parts)):
        raise ValueError("incremental checkpoint %s: tensor %s must have entries in [0, %d)" %
                         (delta.prefix, table + _DELTA_PLACEMENT, len(parts)))

    def part_of(keys):
      if placement is None:
        return keys % _BUCKETS % len(parts)
      return placement[keys % len(placement)]

    found, replaces = [], [False] * len(parts)
    for number in reversed(range(len(parts))):
      stem = parts[number]
      count = shapes.get(stem + _DELTA_KEYS)
      rest = [stem + n for n in (_DELTA_ERASED, _DELTA_COUNTED, _DELTA_REPLACES)]
      if not all(name in shapes for name in rest):
        raise ValueError("incremental checkpoint %s: lacks one of the tensors %s" %
                         (delta.prefix, ", ".join(rest)))
      if count is None or shapes.get(stem + _DELTA_VALUES) != count + [self.width(table)]:
        raise ValueError(
            "incremental checkpoint %s: tensor %s must have the shape [N, %d] beside [N] of "
            "%s, got %s and %s" %
            (delta.prefix, stem + _DELTA_VALUES, self.width(table), stem + _DELTA_KEYS,
             shapes.get(stem + _DELTA_VALUES, "no tensor"), count or "no tensor"))
      own = lambda keys, number=number: (
          np.ones(len(keys), bool) if placement is None else part_of(keys) == number)
      keys = table_directories.as_keys(delta.reader.get_tensor(stem + _DELTA_KEYS), stem)
      found.insert(0, (delta, stem, own(keys) & later.stay(keys)))
      mentioned = [keys]
      for name in (_DELTA_ERASED, _DELTA_COUNTED):
        mentioned.append(table_directories.as_keys(delta.reader.get_tensor(stem + name), stem))
      for some in mentioned:
        later.mention(some[own(some)])
      replaces[number] = bool(delta.reader.get_tensor(stem + _DELTA_REPLACES)[0])
    if any(replaces):
      later.replace(part_of, replaces)
    return found

  def dense_shape(self, name):
    """Returns the shape of a dense variable; None if it does not exist."""
    return self._shapes.get(name)

  def dense(self, name):
    """Returns a dense variable. Every delta contains all of them."""
    reader = self._deltas[-1].reader if self._deltas else self._reader
    if not reader.has_tensor(name):
      reader = self._reader
    return reader.get_tensor(name)


def checkpoint_tables(prefix, full_only=False):
  """Returns {name: (rows, width)} of the embedding variables of a checkpoint.

  Args:
    prefix: of the checkpoint, or a folder, which stands for its newest checkpoint.
    full_only: as for `from_checkpoint`.

  Raises:
    ValueError: there is no such checkpoint, or a delta is missing or damaged.
  """
  return sizes(Checkpoint(prefix, full_only))


def sizes(checkpoint):
  """Returns {name: (rows, width)} of the tables of a `Checkpoint`."""
  return {
      table: (sum(len(keys) for keys, _ in checkpoint.pieces(table, with_rows=False)),
              checkpoint.width(table)) for table in checkpoint.tables
  }


def folder_name(table):
  """Returns the name of a table's folder: other characters than letters, digits, '_'
  and '-' become '_'.
  """
  return _PUNCTUATION.sub("_", table)


def from_checkpoint(prefix, out, tables=None, dense=(), full_only=False):
  """Writes a table directory for each table of a checkpoint: out/<table>.

  In folder names, characters other than letters, digits, '_' and '-' become '_'.

  If the checkpoint is the newest of its folder, the incremental checkpoints that
  continue it are applied, as by `tf.train.Saver().restore`. An older checkpoint is read
  alone.

  Args:
    prefix: of the checkpoint, as tf.train.Saver.save returns it, or a folder, which
      stands for its newest checkpoint.
    out: folder.
    tables: names of embedding variables; None: all of the checkpoint.
    dense: names of dense variables [n, width] to write as tables with the keys 0 to n -
      1.
    full_only: bool; True: ignore incremental checkpoints.

  Returns:
    {table: (rows, width)}.

  Raises:
    ValueError: a checkpoint or table does not exist, a table has no rows, two names map
      to one folder, the folder of a table has another table's files, or an incremental
      checkpoint is missing, damaged or continues another checkpoint. The message names
      it.
  """
  checkpoint = Checkpoint(prefix, full_only)
  tf.compat.v1.logging.info("Converting %s", checkpoint.name)
  return write(checkpoint, out, tables, dense)


def write(checkpoint, out, tables, dense):
  """Writes tables of a `Checkpoint`; arguments as for `from_checkpoint`."""
  prefix = checkpoint.prefix
  if tables is None:
    tables = sorted(checkpoint.tables)
    for name in checkpoint.unsure():
      tf.compat.v1.logging.warning(
          "%s: %s is taken for an optimizer's slot; if it is a table, name it in `tables`",
          prefix, name)
  wanted = list(tables) + list(dense)
  if not wanted:
    raise ValueError("%s: has no embedding variable; name dense variables in `dense`" %
                     prefix)
  folders = {}
  for name in wanted:
    other = folders.setdefault(folder_name(name), name)
    if other != name or wanted.count(name) > 1:
      raise ValueError("%s and %s would both be written to %s" %
                       (other, name, os.path.join(out, folder_name(name))))
  for name in tables:
    if checkpoint.parts_of(name) is None:
      raise ValueError("%s: has no embedding variable '%s'; it has %s" %
                       (prefix, name, ", ".join(sorted(checkpoint.tables)) or "none"))
  for name in dense:
    shape = checkpoint.dense_shape(name)
    if len(shape or ()) != 2:
      raise ValueError("%s: has no variable '%s' of rank 2%s" % (
          prefix, name, "" if shape is None else ", its shape is %s" % shape))
  written = {}
  for name in tables:
    written[name] = table_directories.write_pieces(os.path.join(out, folder_name(name)),
                                                   checkpoint.pieces(name), name)
  for name in dense:
    rows = checkpoint.dense(name)
    written[name] = table_directories.write_pieces(
        os.path.join(out, folder_name(name)), [(np.arange(len(rows)), rows)], name)
  return written

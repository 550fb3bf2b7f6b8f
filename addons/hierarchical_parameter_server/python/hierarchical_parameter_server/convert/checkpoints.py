# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads tables from a tf.train.Saver checkpoint.

They are embedding variables, whole or in parts, and dense variables of rank 2, whole or
in slices, whose row numbers are the keys. DeepRec's low_precision_optimize stores a table T
as int8 numbers, T/int8_data, with a scale for each column, T/int8_scale: its rows are their
products.
"""

import os
import re

import numpy as np
import tensorflow as tf

from hierarchical_parameter_server.checkpoint_format import table_directories
from hierarchical_parameter_server.checkpoint_format.checkpoint_tables import Checkpoint

_INT8_DATA, _INT8_SCALE = "/int8_data", "/int8_scale"
_PUNCTUATION = re.compile(r"[^0-9A-Za-z_-]")


def checkpoint_tables(prefix, full_only=False):
  """Returns {name: (rows, width)} of the embedding variables of a checkpoint.

  Args:
    prefix: prefix of the checkpoint, or a folder, which stands for its newest checkpoint.
    full_only: as for `from_checkpoint`.

  Raises:
    ValueError: there is no such checkpoint, or a delta is missing or damaged.
  """
  return sizes(Checkpoint(prefix, full_only))


def sizes(checkpoint):
  """Returns {name: (rows, width)} of the tables of a `Checkpoint`."""
  return {
      _name(checkpoint, stored):
      (sum(len(keys) for keys, _ in table.pieces_of_rows(with_rows=False)), table.dim)
      for stored, table in checkpoint.tables.items()
  }


def _name(checkpoint, stored):
  """Returns the name of the table whose tensors have a name: T for DeepRec's T/int8_data."""
  table = stored[:-len(_INT8_DATA)] if stored.endswith(_INT8_DATA) else stored
  return table if table + _INT8_SCALE in checkpoint.others else stored


def folder_name(table):
  """Returns the name of a table's folder: other characters than letters, digits, '_'
  and '-' become '_'.
  """
  return _PUNCTUATION.sub("_", table)


def _pieces(checkpoint, name):
  """Returns an iterable of a table's (keys, rows), or a slot's; None: does not exist.

  Raises:
    ValueError: it is a slot, and the checkpoint has deltas.
  """
  if name in checkpoint.tables:
    return checkpoint.tables[name].pieces_of_rows()
  if name + _INT8_DATA in checkpoint.tables and name + _INT8_SCALE in checkpoint.others:
    return _of_int8(checkpoint, name)
  return checkpoint.slot_rows(name)


def _of_int8(checkpoint, name):
  """Yields (keys, float32 rows) of a table that DeepRec stored as int8.

  Raises:
    ValueError: there is not one scale for each column.
  """
  table = checkpoint.tables[name + _INT8_DATA]
  scale = np.ravel(checkpoint.read(name + _INT8_SCALE))
  if len(scale) != table.dim or scale.dtype.kind != "f":
    raise ValueError("%s: %s: expected %d floats, one for each column, got %s of shape %s" % (
        checkpoint.prefix, name + _INT8_SCALE, table.dim, scale.dtype, list(scale.shape)))
  for keys, rows in table.pieces_of_rows():
    yield keys, rows.astype(np.float32) * scale.astype(np.float32)


def from_checkpoint(prefix, out, tables=None, dense=(), full_only=False, row_type="float32"):
  """Writes a table directory for each table of a checkpoint: out/<table>.

  In folder names, characters other than letters, digits, '_' and '-' become '_'.

  If the checkpoint is the newest of its folder, the incremental checkpoints that
  continue it are applied, as by `tf.train.Saver().restore`. An older checkpoint is read
  alone.

  Args:
    prefix: prefix of the checkpoint, as tf.train.Saver.save returns it, or a folder, which
      stands for its newest checkpoint.
    out: folder.
    tables: names of embedding variables; None: all of the checkpoint.
    dense: names of dense variables [n, width] to write as tables with the keys 0 to n -
      1.
    full_only: bool; True: ignore incremental checkpoints.
    row_type: type of the stored rows: "float32", "float16" or "uint8".

  Returns:
    {table: (rows, width)}.

  Raises:
    ValueError: a checkpoint or table does not exist, a table has no rows, two names map
      to one folder, the folder of a table has another table's files, the type cannot store
      a row, or an incremental checkpoint is missing, damaged or continues another
      checkpoint. The message names it.
  """
  checkpoint = Checkpoint(prefix, full_only)
  tf.compat.v1.logging.info("Converting %s", checkpoint.name)
  return write(checkpoint, out, tables, dense, row_type)


def write(checkpoint, out, tables, dense, row_type):
  """Writes tables of a `Checkpoint`; arguments as for `from_checkpoint`."""
  prefix = checkpoint.prefix
  if tables is None:
    tables = sorted(_name(checkpoint, stored) for stored in checkpoint.tables)
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
  pieces = {name: _pieces(checkpoint, name) for name in tables}
  for name in tables:
    if pieces[name] is None:
      raise ValueError("%s: has no embedding variable '%s'; it has %s" %
                       (prefix, name, ", ".join(
                           sorted(_name(checkpoint, t) for t in checkpoint.tables)) or "none"))
  for name in dense:
    shape = checkpoint.shape(name) if name in checkpoint.others else None
    if len(shape or ()) != 2:
      raise ValueError("%s: has no variable '%s' of rank 2%s" % (
          prefix, name, "" if shape is None else ", its shape is %s" % shape))
  written = {}
  for name in tables:
    written[name] = table_directories.write_pieces(os.path.join(out, folder_name(name)),
                                                   pieces[name], name, row_type)
  for name in dense:
    rows = checkpoint.read(name)
    written[name] = table_directories.write_pieces(
        os.path.join(out, folder_name(name)), [(np.arange(len(rows)), rows)], name, row_type)
  return written

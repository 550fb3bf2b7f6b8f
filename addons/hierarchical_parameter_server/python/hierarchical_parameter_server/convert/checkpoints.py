# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads tables from a tf.train.Saver checkpoint.

They are embedding variables, whole or in parts, and dense variables of rank 2, whole or
in slices, whose row numbers are the keys.
"""

import os
import re

import numpy as np
import tensorflow as tf

from hierarchical_parameter_server.checkpoint_format import table_directories
from hierarchical_parameter_server.checkpoint_format.checkpoint_tables import Checkpoint

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
      name: (sum(len(keys) for keys, _ in table.pieces_of_rows(with_rows=False)), table.dim)
      for name, table in checkpoint.tables.items()
  }


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
  return checkpoint.slot_rows(name)


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
  pieces = {name: _pieces(checkpoint, name) for name in tables}
  for name in tables:
    if pieces[name] is None:
      raise ValueError("%s: has no embedding variable '%s'; it has %s" %
                       (prefix, name, ", ".join(sorted(checkpoint.tables)) or "none"))
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

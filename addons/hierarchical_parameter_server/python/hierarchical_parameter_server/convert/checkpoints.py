# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables out of a tf.train.Saver checkpoint.

An embedding variable `v` is there as the tensors `v-keys` and `v-values`, in parts as
`v/part_0-keys` and so on; a dense variable is one tensor of rank 2, whose row numbers are its
keys, or the slices of a partitioned one.
"""

import os
import re

import numpy as np
import tensorflow as tf

from hierarchical_parameter_server.convert import directories

_KEYS, _VALUES = "-keys", "-values"
_PART = re.compile(r"^(.*)/part_(\d+)$")

# Tensors of an optimizer's slot have the names of a table in it: v/Adagrad-keys.
_PUNCTUATION = re.compile(r"[^0-9A-Za-z_-]")


def _reader(prefix):
  try:
    return tf.train.load_checkpoint(prefix)
  except (tf.errors.OpError, ValueError) as e:
    raise ValueError("%s: cannot be read as a checkpoint: %s" % (prefix, e))


def _parts(shapes):
  """Returns {table: names of its parts in order} of embedding variables and their slots."""
  found = {}
  for name in shapes:
    if not name.endswith(_KEYS) or name[:-len(_KEYS)] + _VALUES not in shapes:
      continue
    stem = name[:-len(_KEYS)]
    match = _PART.match(stem)
    table, number = (match.group(1), int(match.group(2))) if match else (stem, 0)
    found.setdefault(table, []).append((number, stem))
  return {table: [stem for _, stem in sorted(parts)] for table, parts in found.items()}


def checkpoint_tables(prefix):
  """Returns {name: (rows, width)} of the embedding variables of a checkpoint.

  Raises:
    ValueError: there is no such checkpoint.
  """
  shapes = _reader(prefix).get_variable_to_shape_map()
  parts = _parts(shapes)
  tables = {}
  for table, stems in parts.items():
    # A slot lies under its table, and is called after an optimizer.
    if any(table.startswith(other + "/") for other in parts if other != table):
      continue
    rows = sum(shapes[stem + _VALUES][0] for stem in stems)
    tables[table] = (rows, shapes[stems[0] + _VALUES][1])
  return tables


def folder_name(table):
  """Returns the name of a table's folder: letters, digits, '_' and '-' stay."""
  return _PUNCTUATION.sub("_", table)


def from_checkpoint(prefix, out, tables=None, dense=()):
  """Writes a table directory for each table of a checkpoint: out/<table>.

  In the folders' names other characters than letters, digits, '_' and '-' become '_'.

  Args:
    prefix: of the checkpoint, as tf.train.Saver.save returns it.
    out: folder.
    tables: names of embedding variables; None: all of the checkpoint.
    dense: names of dense variables [n, width] to write as tables of the keys 0 to n - 1.

  Returns:
    {table: (rows, width)}.

  Raises:
    ValueError: no such checkpoint or table, a table without rows, or two names that lead to
      one folder. The message names it.
  """
  reader = _reader(prefix)
  shapes = reader.get_variable_to_shape_map()
  parts = _parts(shapes)
  if tables is None:
    tables = sorted(checkpoint_tables(prefix))
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
    if name not in parts:
      raise ValueError("%s: has no embedding variable '%s'; it has %s" %
                       (prefix, name, ", ".join(sorted(checkpoint_tables(prefix))) or "none"))
  for name in dense:
    if len(shapes.get(name, ())) != 2:
      raise ValueError("%s: has no variable '%s' of rank 2%s" % (
          prefix, name, ", its shape is %s" % shapes[name] if name in shapes else ""))
  written = {}
  for name in tables:
    pieces = ((reader.get_tensor(stem + _KEYS), reader.get_tensor(stem + _VALUES))
              for stem in parts[name])
    written[name] = directories.write_pieces(os.path.join(out, folder_name(name)), pieces)
  for name in dense:
    rows = reader.get_tensor(name)
    written[name] = directories.write_pieces(
        os.path.join(out, folder_name(name)), [(np.arange(len(rows)), rows)])
  return written

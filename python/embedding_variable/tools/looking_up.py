# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`lookup`: prints the rows of keys of a checkpoint."""

import numpy as np

from embedding_variable.checkpoint_format import checkpoint_tables
from embedding_variable.checkpoint_format import errors
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.tools import progress


def _floats(row):
  return " ".join("%.6g" % x for x in row)


def _check_keys(table, keys):
  """Returns the keys as an array of the table's type."""
  info = np.iinfo(table.key_dtype)
  for key in keys:
    if not info.min <= key <= info.max:
      raise errors.CheckpointError("variable '%s' has %s keys, which cannot hold %d" %
                                   (table.name, table.key_dtype.name, key))
  return np.array(keys, table.key_dtype)


def _read(table, column, bar):
  """Reads a column and updates the progress bar."""
  result = table.column(column)
  bar.add(1, column)
  return result


def text(table, keys):
  """Returns the table's content for each key.

  Args:
    table: a `Table`.
    keys: list of ints; may repeat.

  Raises:
    CheckpointError: a key is out of the range of the table's type.
  """
  wanted = _check_keys(table, keys)
  own = table.column(tensor_names.KEYS)
  positions, found = checkpoint_tables.positions_of(wanted, own)
  values = freqs = versions = None
  slots = []
  if found.any():
    columns = [tensor_names.VALUES, tensor_names.FREQS, tensor_names.VERSIONS]
    with progress.Progress("lookup", len(columns) + len(table.slots)) as bar:
      values, freqs, versions = [_read(table, c, bar) for c in columns]
      for slot in table.slots:
        slots.append((slot, table.slot_values(slot, own)))
        bar.add(1, slot)
  filtered = table.column(tensor_names.KEYS_FILTERED)
  counts = table.column(tensor_names.FREQS_FILTERED)
  lines = []
  for key, at, has_row in zip(wanted, positions, found):
    if has_row:
      facts = []
      if freqs is not None:
        facts.append("frequency %d" % freqs[at])
      if versions is not None:
        facts.append("version %d" % versions[at])
      lines.append("%s[%d]%s" % (table.name, key,
                                 ": " + ", ".join(facts) if facts else ""))
      lines.append("  value  %s" % _floats(values[at]))
      for slot, rows in slots:
        lines.append("  %s  %s" % (slot, "missing" if rows is None else
                                   _floats(rows[at])))
      continue
    where = np.flatnonzero(filtered == key) if filtered is not None else []
    if len(where):
      count = "" if counts is None else ", frequency %d" % counts[where[0]]
      lines.append("%s[%d]: not admitted yet%s" % (table.name, key, count))
      continue
    lines.append("%s[%d]: absent" % (table.name, key))
    default = table.default_row(int(key))
    if default is not None:
      lines.append("  reads default row %d  %s" % (default[0], _floats(default[1])))
  return "\n".join(lines) + "\n"

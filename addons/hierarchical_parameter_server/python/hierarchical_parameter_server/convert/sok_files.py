# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads tables from SparseOperationKit's own files.

`sok.dump` writes <table>-key and <table>-weight into one folder. Each is a header of
296 bytes (a name, and the file's kind and the index of the element type, both
big-endian), followed by the array. The old `Saver.dump_to_file` writes
<variable>_keys.file and <variable>_values.file without a header. Both write the sums of
a table's files too, in <table>-sums and <variable>_sums.file; without sums (files of
others) only the sizes are compared.
"""

import glob
import os
import struct

import numpy as np

from hierarchical_parameter_server.checkpoint_format import table_directories
from hierarchical_parameter_server.checkpoint_format import replaced_together

_HEADER = 296
_KIND_AT, _TYPE_AT = 256, 292
_KINDS = {"-key": 0, "-weight": 1}
_TYPES = ("<i4", "<i8", "<u4", "<u8", "<f2", "<f4", "<f8")

# Rows read at once.
_PIECE = 1 << 20


def _dumped(path, ending):
  """Returns the array of a dumped file as a memory map."""
  size = os.path.getsize(path)
  with open(path, "rb") as f:
    header = f.read(_HEADER)
  if len(header) < _HEADER:
    raise ValueError("%s: has %d bytes, expected a header of %d" % (path, size, _HEADER))
  kind, = struct.unpack_from(">I", header, _KIND_AT)
  index, = struct.unpack_from(">I", header, _TYPE_AT)
  if kind != _KINDS[ending]:
    raise ValueError("%s: is a file of type %d, expected type %d" % (path, kind, _KINDS[ending]))
  if index >= len(_TYPES):
    raise ValueError("%s: has the element type %d, expected at most %d" %
                     (path, index, len(_TYPES) - 1))
  dtype = np.dtype(_TYPES[index])
  if (size - _HEADER) % dtype.itemsize:
    raise ValueError("%s: has %d bytes after its header, expected a multiple of %d" %
                     (path, size - _HEADER, dtype.itemsize))
  if size == _HEADER:
    return np.zeros([0], dtype)
  return np.memmap(path, dtype, "r", _HEADER)


def _pieces(keys, rows, what):
  """Yields (keys, rows [n, width])."""
  if not len(keys) or len(rows) % len(keys) or not len(rows):
    raise ValueError("%s: %d floats are not a whole number of rows for %d keys" %
                     (what, len(rows), len(keys)))
  rows = rows.reshape([len(keys), -1])
  for begin in range(0, len(keys), _PIECE):
    yield keys[begin:begin + _PIECE], rows[begin:begin + _PIECE]


def _names(folder, endings):
  """Returns the names of the tables in a folder; endings: as for `_files`."""
  # If a dump was interrupted, the first one of a folder has no final names yet.
  found = set()
  for ending in (endings[0], endings[2], endings[2] + ".part"):
    for path in glob.glob(os.path.join(glob.escape(folder), "*" + ending)):
      found.add(os.path.basename(path)[:-len(ending)])
  return sorted(found)


def _files(folder, table, endings):
  """Returns the paths of a table's keys and rows, or None if it was never complete.

  Args:
    folder: path.
    table: string.
    endings: what follows the table's name in the files of keys, rows and sums.

  Raises:
    ValueError: a file is missing, or does not have its sums.
  """
  stem = os.path.join(folder, table)
  keys, rows = replaced_together.current(
      stem + endings[2], [[stem + endings[0]], [stem + endings[1]]])
  if not os.path.exists(keys):
    return None
  if not os.path.exists(rows):
    raise ValueError("%s: there is no %s" % (folder, os.path.basename(rows)))
  return keys, rows


def from_sok_dump(folder, out, tables=None, row_type="float32"):
  """Writes a table directory for each table of a sok.dump folder: out/<table>.

  Args:
    folder: the folder passed to `sok.dump`.
    out: folder.
    tables: first part of the file names: the variables' names with punctuation as "_"
      ("table0_0" for "table0:0"). None: all.
    row_type: type of the stored rows: "float32", "float16" or "uint8".

  Returns:
    {table: (rows, width)}.

  Raises:
    ValueError: no such table, a file with another format, or the type cannot store a row;
      the message names it.
  """
  endings = ("-key", "-weight", "-sums")
  found = _names(folder, endings)
  if not found:
    raise ValueError("%s: has no file <table>-key" % folder)
  written = {}
  for table in found if tables is None else tables:
    if table not in found:
      raise ValueError("%s: has no table '%s'; it has %s" %
                       (folder, table, ", ".join(found)))
    paths = _files(folder, table, endings)
    if paths:
      pieces = _pieces(_dumped(paths[0], "-key"), _dumped(paths[1], "-weight"),
                       os.path.join(folder, table))
      written[table] = table_directories.write_pieces(os.path.join(out, table), pieces,
                                                      row_type=row_type)
  return written


def from_legacy(folder, out, key_dtype="int64", row_type="float32"):
  """Writes a table directory for each table of sok's old dump_to_file: out/<variable>.

  Args:
    folder: the folder passed to `Saver.dump_to_file`.
    out: folder.
    key_dtype: "int64", or "uint32" for variables with 32-bit keys.
    row_type: as for `from_sok_dump`.

  Returns:
    {variable: (rows, width)}.

  Raises:
    ValueError: there are no such files, their sizes do not match, or the type cannot
      store a row.
  """
  if key_dtype not in ("int64", "uint32"):
    raise ValueError("key_dtype: expected int64 or uint32, got %s" % key_dtype)
  endings = ("_keys.file", "_values.file", "_sums.file")
  found = _names(folder, endings)
  if not found:
    raise ValueError("%s: has no file <variable>_keys.file" % folder)
  written = {}
  dtype = np.dtype(key_dtype).newbyteorder("<")
  for name in found:
    paths = _files(folder, name, endings)
    if not paths:
      continue
    for path, size in zip(paths, (dtype.itemsize, 4)):
      if os.path.getsize(path) % size:
        raise ValueError("%s: has %d bytes, expected a multiple of %d" %
                         (path, os.path.getsize(path), size))
    pieces = _pieces(np.fromfile(paths[0], dtype), np.fromfile(paths[1], "<f4"),
                     os.path.join(folder, name))
    written[name] = table_directories.write_pieces(os.path.join(out, name), pieces,
                                                   row_type=row_type)
  return written

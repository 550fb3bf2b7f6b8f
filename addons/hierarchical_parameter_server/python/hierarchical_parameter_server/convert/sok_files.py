# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads tables from SparseOperationKit's own files.

`sok.dump` writes <table>-key and <table>-weight into one folder. Each is a header of
296 bytes (a name, and the file's kind and the index of the element type, both
big-endian), followed by the array. The old `Saver.dump_to_file` writes
<variable>_keys.file and <variable>_values.file without a header.
"""

import glob
import os
import struct

import numpy as np

from hierarchical_parameter_server.convert import directories

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
    raise ValueError("%s: has %d bytes, want a header of %d" % (path, size, _HEADER))
  kind, = struct.unpack_from(">I", header, _KIND_AT)
  index, = struct.unpack_from(">I", header, _TYPE_AT)
  if kind != _KINDS[ending]:
    raise ValueError("%s: is a file of type %d, want type %d" % (path, kind, _KINDS[ending]))
  if index >= len(_TYPES):
    raise ValueError("%s: has the element type %d, want at most %d" %
                     (path, index, len(_TYPES) - 1))
  dtype = np.dtype(_TYPES[index])
  if (size - _HEADER) % dtype.itemsize:
    raise ValueError("%s: has %d bytes after its header, want a multiple of %d" %
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


def from_sok_dump(folder, out, tables=None):
  """Writes a table directory for each table of a sok.dump folder: out/<table>.

  Args:
    folder: the folder passed to `sok.dump`.
    out: folder.
    tables: first part of the file names: the variables' names with punctuation as "_"
      ("table0_0" for "table0:0"). None: all.

  Returns:
    {table: (rows, width)}.

  Raises:
    ValueError: no such table, or a file with another format; the message names it.
  """
  found = sorted(os.path.basename(path)[:-len("-key")]
                 for path in glob.glob(os.path.join(glob.escape(folder), "*-key")))
  if not found:
    raise ValueError("%s: has no file <table>-key" % folder)
  written = {}
  for table in found if tables is None else tables:
    if table not in found:
      raise ValueError("%s: has no table '%s'; it has %s" %
                       (folder, table, ", ".join(found)))
    path = os.path.join(folder, table)
    if not os.path.exists(path + "-weight"):
      raise ValueError("%s: there is no %s-weight" % (folder, table))
    pieces = _pieces(_dumped(path + "-key", "-key"), _dumped(path + "-weight", "-weight"),
                     path)
    written[table] = directories.write_pieces(os.path.join(out, table), pieces)
  return written


def from_legacy(folder, out, key_dtype="int64"):
  """Writes a table directory for each table of sok's old dump_to_file: out/<variable>.

  Args:
    folder: the folder passed to `Saver.dump_to_file`.
    out: folder.
    key_dtype: "int64", or "uint32" for variables with 32-bit keys.

  Returns:
    {variable: (rows, width)}.

  Raises:
    ValueError: there are no such files, or their sizes do not match.
  """
  if key_dtype not in ("int64", "uint32"):
    raise ValueError("key_dtype: want int64 or uint32, got %s" % key_dtype)
  ending = "_keys.file"
  paths = sorted(glob.glob(os.path.join(glob.escape(folder), "*" + ending)))
  if not paths:
    raise ValueError("%s: has no file <variable>%s" % (folder, ending))
  written = {}
  for path in paths:
    stem = path[:-len(ending)]
    values = stem + "_values.file"
    if not os.path.exists(values):
      raise ValueError("%s: there is no %s" % (folder, os.path.basename(values)))
    dtype = np.dtype(key_dtype).newbyteorder("<")
    for name, size in ((path, dtype.itemsize), (values, 4)):
      if os.path.getsize(name) % size:
        raise ValueError("%s: has %d bytes, want a multiple of %d" %
                         (name, os.path.getsize(name), size))
    name = os.path.basename(stem)
    pieces = _pieces(np.fromfile(path, dtype), np.fromfile(values, "<f4"), stem)
    written[name] = directories.write_pieces(os.path.join(out, name), pieces)
  return written

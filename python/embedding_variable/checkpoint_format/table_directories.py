# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes table directories.

The file hps_sums has the size and checksums of `key` and of the file of rows. Readers
compare them, so keys are never served with rows of another conversion.
"""

import os
import zlib

import numpy as np

from . import packed_rows
from . import replaced_together

# Rows written at once.
_PIECE = 1 << 16

_MIB = 1 << 20


class _Writer(replaced_together.Writer):
  """Writes one file. Its sums have the CRC-32 of each MiB too, for mapped files."""

  def __init__(self, path):
    super().__init__(path)
    self._crcs, self._in_mib = [], 0

  def write(self, data):
    """Appends bytes."""
    super().write(data)
    view = memoryview(data)
    while len(view):
      if not self._in_mib:
        self._crcs.append(0)
      piece = view[:_MIB - self._in_mib]
      self._crcs[-1] = zlib.crc32(piece, self._crcs[-1])
      self._in_mib = (self._in_mib + len(piece)) % _MIB
      view = view[len(piece):]

  def close(self):
    """Closes the file; raises an error if the bytes cannot be stored on disk."""
    super().close()
    self.sums["crc32_of_mib"] = "".join("%08x" % crc for crc in self._crcs)


def as_keys(keys, what):
  """Returns keys as int64.

  Raises:
    ValueError: they are not a vector of integers, or a uint64 exceeds int64.
  """
  keys = np.asarray(keys)
  if keys.ndim != 1 or keys.dtype.kind not in "iu":
    raise ValueError("%s: expected a vector of integer keys, got %s of shape %s" %
                     (what, keys.dtype, list(keys.shape)))
  if keys.dtype == np.uint64 and len(keys) and int(keys.max()) > 2**63 - 1:
    raise ValueError("%s: key %d is above the largest int64" % (what, keys.max()))
  return keys.astype("<i8", copy=False)


def write_pieces(folder, pieces, table=None, row_type="float32"):
  """Writes a table directory from pieces.

  Args:
    folder: path; created if needed.
    pieces: iterable of (keys [n], rows [n, width]); at least one row in all.
    table: string, the table's name. Two names may have one folder name, as "a/b" and
      "a_b". None: unknown.
    row_type: type of the stored rows, one of `packed_rows.ROW_TYPES`. The files of other
      types are removed.

  Returns:
    (rows, width).

  Raises:
    ValueError: there are no rows, the pieces have different widths, the folder is
      another table's, or the type cannot store a row. Nothing has changed.
    OSError: the folder cannot be written to.
  """
  vectors = packed_rows.vectors_name(row_type)
  os.makedirs(folder, exist_ok=True)
  sums = os.path.join(folder, "hps_sums")
  replaced_together.finish(sums)
  if table is not None:
    replaced_together.check_variable(sums, table)
  writers = []
  count, width = 0, None
  try:
    for name in ("key", vectors):
      writers.append(_Writer(os.path.join(folder, name)))
    for keys, rows in pieces:
      keys = as_keys(keys, folder)
      rows = np.asarray(rows)
      if rows.ndim != 2 or len(rows) != len(keys) or rows.dtype.kind != "f":
        raise ValueError("%s: expected %d rows of floats for %d keys, got %s of shape %s" %
                         (folder, len(keys), len(keys), rows.dtype, list(rows.shape)))
      if width not in (None, rows.shape[1]):
        raise ValueError("%s: rows of %d and of %d floats" %
                         (folder, width, rows.shape[1]))
      width = rows.shape[1]
      for begin in range(0, len(keys) if width else 0, _PIECE):
        piece = keys[begin:begin + _PIECE]
        writers[0].write(piece.tobytes())
        writers[1].write(
            packed_rows.pack(piece, rows[begin:begin + _PIECE], row_type, folder).tobytes())
      count += len(keys)
    if not count or not width:
      raise ValueError("%s: a table without rows cannot be served" % folder)
    for writer in writers:
      writer.close()
  except BaseException:
    for writer in writers:
      writer.discard()
    raise
  replaced_together.commit([(sums, table, writers)])
  for name in set(map(packed_rows.vectors_name, packed_rows.ROW_TYPES)) - {vectors}:
    if os.path.isfile(os.path.join(folder, name)):
      os.remove(os.path.join(folder, name))
  return count, width


def write_table(folder, keys, rows, row_type="float32"):
  """Writes a table directory from arrays.

  Args:
    folder: path; created if needed.
    keys: [n] of any integer type; None: 0 to n - 1, the ids of a dense variable.
    rows: [n, width] of floats.
    row_type: type of the stored rows: "float32", "float16" or "uint8".

  Returns:
    (rows, width).

  Raises:
    ValueError: the shapes or types are wrong, or the type cannot store a row.
  """
  rows = np.asarray(rows)
  if keys is None:
    keys = np.arange(len(rows))
  return write_pieces(folder, [(keys, rows)], row_type=row_type)

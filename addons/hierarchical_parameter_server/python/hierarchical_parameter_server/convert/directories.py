# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes table directories."""

import os

import numpy as np

# Rows written at once.
_PIECE = 1 << 16


def as_keys(keys, what):
  """Returns keys as int64.

  Raises:
    ValueError: they are not a vector of integers, or a uint64 exceeds int64.
  """
  keys = np.asarray(keys)
  if keys.ndim != 1 or keys.dtype.kind not in "iu":
    raise ValueError("%s: want a vector of integer keys, got %s of shape %s" %
                     (what, keys.dtype, list(keys.shape)))
  if keys.dtype == np.uint64 and len(keys) and int(keys.max()) > 2**63 - 1:
    raise ValueError("%s: key %d is above the largest int64" % (what, keys.max()))
  return keys.astype("<i8", copy=False)


def write_pieces(folder, pieces):
  """Writes a table directory from pieces.

  Args:
    folder: path; created if needed.
    pieces: iterable of (keys [n], rows [n, width]); at least one row in all.

  Returns:
    (rows, width).

  Raises:
    ValueError: there are no rows, or the pieces have different widths. Nothing has
      changed.
    OSError: the folder cannot be written to.
  """
  os.makedirs(folder, exist_ok=True)
  names = [os.path.join(folder, name) for name in ("key", "emb_vector")]
  parts = [name + ".part" for name in names]
  count, width = 0, None
  try:
    with open(parts[0], "wb") as key_file, open(parts[1], "wb") as row_file:
      for keys, rows in pieces:
        keys = as_keys(keys, folder)
        rows = np.asarray(rows)
        if rows.ndim != 2 or len(rows) != len(keys) or rows.dtype.kind != "f":
          raise ValueError("%s: want %d rows of floats for %d keys, got %s of shape %s" %
                           (folder, len(keys), len(keys), rows.dtype, list(rows.shape)))
        if width not in (None, rows.shape[1]):
          raise ValueError("%s: rows of %d and of %d floats" %
                           (folder, width, rows.shape[1]))
        width = rows.shape[1]
        for begin in range(0, len(keys), _PIECE):
          key_file.write(keys[begin:begin + _PIECE].tobytes())
          row_file.write(
              np.ascontiguousarray(rows[begin:begin + _PIECE], "<f4").tobytes())
        count += len(keys)
    if not count or not width:
      raise ValueError("%s: a table without rows cannot be served" % folder)
    # Renames the rows first: an old key file that does not match them is rejected, not
    # served.
    os.replace(parts[1], names[1])
    os.replace(parts[0], names[0])
  finally:
    for part in parts:
      if os.path.exists(part):
        os.remove(part)
  return count, width


def write_table(folder, keys, rows):
  """Writes a table directory from arrays.

  Args:
    folder: path; created if needed.
    keys: [n] of any integer type; None: 0 to n - 1, the ids of a dense variable.
    rows: [n, width] of floats; written as float32.

  Returns:
    (rows, width).

  Raises:
    ValueError: the shapes or types are wrong.
  """
  rows = np.asarray(rows)
  if keys is None:
    keys = np.arange(len(rows))
  return write_pieces(folder, [(keys, rows)])

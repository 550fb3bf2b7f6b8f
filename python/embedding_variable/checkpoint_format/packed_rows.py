# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows in fewer bytes than float32, for table directories.

The formats are those of the parameter server's rows/row_format.h, and so are the bits:

  float16  numbers of 16 bits, rounded to nearest, ties to even.
  uint8    bytes q, then at the row's end two float16, scale and offset. A value is
           q * scale + offset. The offset is the largest float16 that is not above the
           row's minimum, the scale the smallest that is not below (maximum - offset) /
           255.

A stored row is a whole number of 4-byte words; zeros fill the last word of the numbers.
Tensors of checkpoints have no such zeros: [n, dim] of float16, [n, dim + 4] of uint8.
"""

import numpy as np

ROW_TYPES = ("float32", "float16", "uint8")


# Row type -> columns that follow a row's numbers in a checkpoint's tensor of that type.
END_BYTES = {"float16": 0, "uint8": 4}


def checked(row_type):
  """Returns a row type; ValueError: there is no such type."""
  if row_type not in ROW_TYPES:
    raise ValueError("row_type: expected one of %s, got %r" % (", ".join(ROW_TYPES), row_type))
  return row_type


def vectors_name(row_type):
  """Returns the name of the file of rows in a table directory."""
  return "emb_vector" if checked(row_type) == "float32" else "emb_vector_" + row_type


def pack(keys, rows, row_type, what):
  """Returns stored rows.

  Args:
    keys: [n], for the error.
    rows: [n, dim] of floats.
    row_type: one of ROW_TYPES.
    what: string that names the table in the error.

  Returns:
    uint8 array [n, bytes of a row].

  Raises:
    ValueError: the type cannot store a row's numbers; the message names its key.
  """
  rows = np.ascontiguousarray(rows, "<f4")
  if row_type == "float32":
    return rows.view(np.uint8).reshape([len(rows), -1])
  is_finite = np.isfinite(rows).all(axis=1)
  with np.errstate(over="ignore", invalid="ignore"):
    if row_type == "float16":
      numbers = rows.astype("<f2")
      parts = [numbers]
      is_finite &= np.isfinite(numbers).all(axis=1)
    else:
      least, most = rows.min(axis=1), rows.max(axis=1)
      offset = _towards(least, -np.inf)
      scale = _towards(((most - offset.astype(np.float64)) / 255).astype(np.float32), np.inf)
      is_finite &= np.isfinite(offset) & np.isfinite(scale)
      steps = np.where(is_finite & (scale > 0), scale, np.inf).astype(np.float64)[:, None]
      q = np.rint((rows - offset.astype(np.float64)[:, None]) / steps)
      parts = [np.where(is_finite[:, None], np.minimum(q, 255), 0).astype(np.uint8),
               np.stack([scale, offset], axis=1).astype("<f2")]
  if not is_finite.all():
    row = int(np.argmin(is_finite))
    raise ValueError(
        "%s: key %d: expected a row of finite numbers that the type %s can store (65504 is "
        "the largest float16), got %s to %s or a number that is not finite" %
        (what, keys[row], row_type, rows[row].min(), rows[row].max()))
  parts = [part.view(np.uint8).reshape([len(rows), -1]) for part in parts]
  parts.insert(1, np.zeros([len(rows), -parts[0].shape[1] % 4], np.uint8))
  return np.concatenate(parts, axis=1)


def unpack(stored, row_type, dim):
  """Returns the float32 rows [n, dim] of stored rows, a uint8 array [n, bytes]."""
  stored = np.ascontiguousarray(stored)
  if row_type == "float32":
    return stored.view("<f4")
  if row_type == "float16":
    return stored.view("<f2")[:, :dim].astype(np.float32)
  scale, offset = stored[:, -4:].copy().view("<f2").astype(np.float32).T
  return stored[:, :dim].astype(np.float32) * scale[:, None] + offset[:, None]


def _towards(x, end):
  """Rounds float32 numbers to float16 towards -inf or inf; NaN stays NaN."""
  half = x.astype(np.float16)
  bits = half.view(np.uint16)
  # np.nextafter makes NaN of an infinite float16.
  away = (bits >= 0x8000) == (end < 0)
  following = np.where(half == 0, 0x8001 if end < 0 else 1,
                       bits + np.where(away, 1, -1)).astype(np.uint16)
  is_beyond = half > x if end < 0 else half < x
  return np.where(is_beyond, following, bits).view(np.float16)

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of an embedding's rows: one flat file of records, or a folder of arrays.

Flat, one record per row, little-endian:

  key      4 bytes (I32, unsigned) or 8 (I64)
  slot id  8 bytes, in layers with a table per slot
  floats   of each array, float32

A folder has `key` (always int64), `slot_id` (int64, in layers with a table per slot)
and a file per array. The array of rows is `emb_vector`; those of optimizer states have
the states' names.
"""

import collections
import os

import numpy as np

import embedding_variable

# keys: int64 [N]. slots: int64 [N] or None. arrays: list of float32 [N, floats].
Rows = collections.namedtuple("Rows", ["keys", "slots", "arrays"])

VECTOR = "emb_vector"

_durable = embedding_variable.durable
current = _durable.current  # the path to read a written file or folder from


def record_type(key_bytes, has_slots, floats, count):
  """Returns the dtype of a record.

  Args:
    key_bytes: 4 or 8.
    has_slots: bool.
    floats: int, floats per row of an array.
    count: int, number of arrays.
  """
  fields = [("key", "<u4" if key_bytes == 4 else "<i8")]
  if has_slots:
    fields.append(("slot", "<i8"))
  return np.dtype(fields + [("array_%d" % k, "<f4", (floats,)) for k in range(count)])


def _check_keys(path, keys, key_bytes):
  if key_bytes == 4 and len(keys) and (keys.min() < 0 or keys.max() >= 1 << 32):
    raise ValueError("%s: keys %d to %d do not fit 4 bytes (input_key_type I32)" %
                     (path, keys.min(), keys.max()))


def write_flat(path, rows, key_bytes):
  """Writes one flat file; replaces an existing one atomically and durably.

  Raises:
    ValueError: a key does not fit the key size.
    OSError: it cannot be written.
  """
  _check_keys(path, rows.keys, key_bytes)
  kind = record_type(key_bytes, rows.slots is not None, rows.arrays[0].shape[1],
                     len(rows.arrays))
  records = np.empty([len(rows.keys)], kind)
  records["key"] = rows.keys
  if rows.slots is not None:
    records["slot"] = rows.slots
  for k, array in enumerate(rows.arrays):
    records["array_%d" % k] = array
  with _durable.replaced(path) as part:
    records.tofile(part)


def write_bytes(path, data):
  """Writes a file; replaces an existing one atomically and durably."""
  with _durable.replaced(path) as part, open(part, "wb") as f:
    f.write(data)


def write_folder(path, rows, names):
  """Writes a folder of arrays; replaces an existing one durably.

  If the process ends before all files are complete, `read` reads the previous folder.

  Args:
    path: string.
    rows: Rows.
    names: list of strings, file names of the arrays.
  """
  with _durable.replaced(path) as part:
    os.mkdir(part)
    rows.keys.astype("<i8").tofile(os.path.join(part, "key"))
    if rows.slots is not None:
      rows.slots.astype("<i8").tofile(os.path.join(part, "slot_id"))
    for name, array in zip(names, rows.arrays):
      array.astype("<f4").tofile(os.path.join(part, name))


def _read_array(path, dtype):
  size = os.path.getsize(path)
  if size % np.dtype(dtype).itemsize:
    raise ValueError("%s: %d bytes are not a whole number of %s" %
                     (path, size, np.dtype(dtype).name))
  return np.fromfile(path, dtype)


def _read_folder(path, has_slots, floats, names):
  keys = _read_array(os.path.join(path, "key"), "<i8")
  slots = _read_array(os.path.join(path, "slot_id"), "<i8") if has_slots else None
  if slots is not None and len(slots) != len(keys):
    raise ValueError("%s: %d keys and %d slot ids" % (path, len(keys), len(slots)))
  arrays = []
  for name in names:
    array = _read_array(os.path.join(path, name), "<f4")
    if array.size != len(keys) * floats:
      raise ValueError("%s: file %s has %d floats, expected %d for each of %d keys" %
                       (path, name, array.size, floats, len(keys)))
    arrays.append(array.reshape([-1, floats]))
  return Rows(keys, slots, arrays)


def read(path, key_bytes, has_slots, floats, names):
  """Returns the Rows of a flat file or a folder.

  Args:
    path: string.
    key_bytes: 4 or 8, bytes per key in a flat file.
    has_slots: bool, whether rows have slot ids.
    floats: int, floats per row of an array.
    names: list of strings, names of the arrays.

  Raises:
    ValueError: the size does not match such rows.
    OSError: it cannot be read.
  """
  path = current(path)
  if os.path.isdir(path):
    return _read_folder(path, has_slots, floats, names)
  kind = record_type(key_bytes, has_slots, floats, len(names))
  size = os.path.getsize(path)
  if size % kind.itemsize:
    raise ValueError("%s: %d bytes are not a whole number of records of %d: a key of %d, %s"
                     "%d x %d floats" % (path, size, kind.itemsize, key_bytes,
                                         "a slot id of 8, " if has_slots else "",
                                         len(names), floats))
  records = np.fromfile(path, kind)
  return Rows(records["key"].astype(np.int64), records["slot"] if has_slots else None,
              [np.ascontiguousarray(records["array_%d" % k]) for k in range(len(names))])

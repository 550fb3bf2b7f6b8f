# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`export`: one embedding variable as a CSV, NumPy or Parquet file."""

import os

import numpy as np

from embedding_variable.checkpoint_format import durable
from embedding_variable.checkpoint_format import errors
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.tools import arrow
from embedding_variable.tools import progress

FORMATS = ("csv", "npz", "parquet")

_CSV_ROWS = 4096


def export(table, file_format, path, with_slots=False, overwrite=False):
  """Writes a table; the file appears when it is complete.

  Rows are in the checkpoint's order. Versions and frequencies are omitted if they were
  not recorded.

    csv      a header, then one line per key: key, version, frequency, value_0, ...,
             and Adagrad_0, ... for a slot
    npz      arrays keys, versions, frequencies, values, and one for each slot
    parquet  columns key, version, frequency, values (list of floats), and one list for
             each slot

  Args:
    table: a `Table`.
    file_format: one of `FORMATS`.
    path: file to write.
    with_slots: also write the optimizer's slots.
    overwrite: replace an existing file.

  Raises:
    CheckpointError: the file exists or cannot be written, or the format's library is missing.
  """
  write = {"csv": _write_csv, "npz": _write_npz, "parquet": _write_parquet}[file_format]
  if os.path.exists(path) and not overwrite:
    raise errors.CheckpointError("%s exists; --force overwrites it" % path)
  pyarrow = _pyarrow() if file_format == "parquet" else None
  columns, slots = _read(table, with_slots)
  try:
    with durable.replaced(path) as part:
      if pyarrow:
        write(part, columns, slots, pyarrow)
      else:
        write(part, columns, slots)
  except OSError as e:
    raise errors.CheckpointError("%s cannot be written: %s" % (path, e))


def _pyarrow():
  try:
    return arrow.load()
  except ImportError as e:
    raise errors.CheckpointError("--to parquet: %s, or --to npz" % e)


def _read(table, with_slots):
  """Returns (list of (name, array), dict: slot -> array), all with a row per key."""
  with progress.Progress("read", 4 + len(table.slots)) as bar:
    columns = []
    for name, column in (("keys", tensor_names.KEYS),
                         ("versions", tensor_names.VERSIONS),
                         ("frequencies", tensor_names.FREQS),
                         ("values", tensor_names.VALUES)):
      array = table.column(column)
      bar.add(1, column)
      if array is not None:
        columns.append((name, array))
    slots = {}
    for slot in table.slots if with_slots else []:
      slots[slot] = table.slot_values(slot, columns[0][1])
      bar.add(1, slot)
      if slots[slot] is None:
        raise errors.CheckpointError("variable '%s': slot '%s' is not in all of its parts" %
                                     (table.name, slot))
  return columns, slots


# Names for a single row's entry; a column has the plural.
_SINGULAR = {"keys": "key", "versions": "version", "frequencies": "frequency"}


def _write_csv(path, columns, slots):
  whole = [(_SINGULAR[name], array) for name, array in columns if name in _SINGULAR]
  wide = [("value", dict(columns)["values"])] + sorted(slots.items())
  header = [name for name, _ in whole]
  for name, array in wide:
    header += ["%s_%d" % (name, i) for i in range(array.shape[1])]
  count = len(whole[0][1])
  # Nine digits represent each float32 exactly.
  line = ",".join(["%d"] * len(whole) +
                  ["%.9g"] * sum(a.shape[1] for _, a in wide)) + "\n"
  with open(path, "w") as f, progress.Progress("write", count) as bar:
    f.write(",".join(header) + "\n")
    for start in range(0, count, _CSV_ROWS):
      rows = slice(start, start + _CSV_ROWS)
      ints = zip(*[a[rows].tolist() for _, a in whole])
      floats = np.concatenate([a[rows] for _, a in wide], axis=1).tolist()
      f.write("".join([line % (i + tuple(v)) for i, v in zip(ints, floats)]))
      bar.add(len(floats), "%d keys" % min(count, start + _CSV_ROWS))


def _write_npz(path, columns, slots):
  arrays = dict(columns)
  for slot, values in slots.items():
    name = slot.replace("/", "_")
    if name in arrays:
      raise errors.CheckpointError("the name '%s' of the array of slot '%s' is another array's; "
                                   "use --to csv or parquet" % (name, slot))
    arrays[name] = values
  with open(path, "wb") as f:
    np.savez(f, **arrays)


def _write_parquet(path, columns, slots, pyarrow):
  """Writes in pieces, each a row group."""
  wide = [("values", dict(columns)["values"])] + sorted(slots.items())
  whole = [(_SINGULAR[name], array) for name, array in columns if name in _SINGULAR]
  schema = pyarrow.schema(
      [(name, pyarrow.from_numpy_dtype(array.dtype)) for name, array in whole] +
      [(name, pyarrow.list_(pyarrow.float32())) for name, _ in wide])
  count, step = len(whole[0][1]), 64 * 1024
  with pyarrow.parquet.ParquetWriter(path, schema) as writer, \
      progress.Progress("write", count) as bar:
    for start in range(0, max(count, 1), step):
      rows = slice(start, start + step)
      arrays = [pyarrow.array(a[rows]) for _, a in whole]
      for _, array in wide:
        piece = array[rows]
        offsets = np.arange(len(piece) + 1, dtype=np.int32) * piece.shape[1]
        arrays.append(pyarrow.ListArray.from_arrays(
            pyarrow.array(offsets), pyarrow.array(piece.reshape([-1]))))
      writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
      bar.add(len(arrays[0]), "%d keys" % min(count, start + step))

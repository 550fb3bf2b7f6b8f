# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Criteo's text files: label, 13 integers, 26 hexadecimal numbers, separated by tabs.

Empty lines are skipped.
"""

import re

import numpy as np

from hugectr.data.arrow import csv, pa
from hugectr.data import batches
from hugectr.data import errors

_DENSE, _SLOTS = 13, 26
_NAMES = (["label"] + ["I%d" % (k + 1) for k in range(_DENSE)] +
          ["C%d" % (k + 1) for k in range(_SLOTS)])


# Contents of a field, by the first letter of its column's name.
_EXPECTED = {"l": ("a number", re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")),
             "I": ("an integer, or nothing", re.compile(rb"-?\d*$")),
             "C": ("up to 8 hexadecimal digits", re.compile(rb"[0-9a-fA-F]{0,8}$"))}


class _Wrong(Exception):
  """A field of a block is wrong."""


def _mistake(line):
  """Returns what is wrong with a line, or None."""
  fields = line.split(b"\t")
  if len(fields) != len(_NAMES):
    return ": expected %d fields separated by tabs, got %d" % (len(_NAMES), len(fields))
  for name, field in zip(_NAMES, fields):
    expected, pattern = _EXPECTED[name[0]]
    if not pattern.match(field):
      return ", column %s: expected %s, got %r" % (name, expected, field.decode("latin1"))
  return None


def _first_mistake(path, first, error):
  """Returns the DataError of the first wrong line after `first` samples.

  Args:
    path: string.
    first: int.
    error: exception that the reader of the file raised.
  """
  samples = 0
  with open(path, encoding="latin1") as f:  # ends lines as pyarrow does
    for number, line in enumerate(f, 1):
      line = line.rstrip("\n").encode("latin1")
      samples += bool(line)
      found = _mistake(line) if line and samples > first else None
      if found:
        return errors.DataError("%s: line %d%s" % (path, number, found))
  return errors.DataError("%s: after line %d: %s" % (path, first, error))


def _digits(array):
  """Returns hexadecimal numbers of up to 8 digits, int64 `[N]`; missing ones are -1."""
  text = array.to_numpy(zero_copy_only=False).astype("S9")
  table = np.full([256], -1, np.int64)
  for k, digit in enumerate("0123456789abcdef"):
    table[ord(digit)] = table[ord(digit.upper())] = k
  characters = text.view(np.uint8).reshape([-1, 9])
  used = characters != 0
  values = table[characters]
  # NumPy drops bytes 0 at the end.
  ends = np.frombuffer(array.buffers()[1], np.int32)[array.offset:][:len(array) + 1]
  if (used & (values < 0)).any() or (used.sum(axis=1) != np.diff(ends)).any() or (
      used[:, 8].any()):
    raise _Wrong()
  number = np.zeros([len(text)], np.int64)
  for k in range(8):
    number = np.where(used[:, k], number * 16 + np.maximum(values[:, k], 0), number)
  return np.where(used[:, 0], number, -1)


def chunks(path, data):
  """Yields the samples of a file as Chunks whose keys have no offsets.

  A dense feature x becomes log(max(x, 0) + 1), or 0 if missing. A category x becomes 1
  + x modulo (size - 1), where size is that of its slot, or 0 if missing.

  Args:
    path: string.
    data: config's Data, with slot_size_array.

  Raises:
    DataError: the file or a line of it is invalid.
  """
  if (data.label_dim, data.dense_dim, sum(s.slot_num for s in data.sparse)) != (
      1, _DENSE, _SLOTS) or not data.slot_sizes or min(data.slot_sizes) < 2:
    raise errors.DataError("%s: Criteo's files need label_dim 1, dense_dim 13, 26 slots and a "
                           "slot_size_array of at least 2 each" % path)
  kinds = {n: pa.binary() if n[0] == "C" else pa.int64() for n in _NAMES}
  kinds["label"] = pa.float32()
  first = 0
  try:
    reader = csv.open_csv(
        path, read_options=csv.ReadOptions(column_names=_NAMES, block_size=1 << 24),
        parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
        convert_options=csv.ConvertOptions(column_types=kinds, null_values=[""],
                                           strings_can_be_null=False))
    for batch in reader:
      columns = [batch.column(k) for k in range(len(_NAMES))]
      if columns[0].null_count:
        raise _Wrong()
      dense = np.stack([np.nan_to_num(c.to_numpy(zero_copy_only=False).astype(np.float64))
                        for c in columns[1:1 + _DENSE]], axis=1)
      slots = []
      for s, column in enumerate(columns[1 + _DENSE:]):
        number = _digits(column)
        slots.append(batches.Slot(np.where(
            number < 0, 0, 1 + number % (data.slot_sizes[s] - 1)), None))
      yield batches.Chunk(columns[0].to_numpy(zero_copy_only=False)[:, None],
                          np.log1p(np.maximum(dense, 0)).astype(np.float32), slots)
      first += batch.num_rows
  except (pa.ArrowException, _Wrong) as e:
    raise _first_mistake(path, first, e)
  except OSError as e:
    raise errors.DataError("%s: after line %d: %s" % (path, first, e))

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Criteo's text files: label, 13 integers, 26 hexadecimal numbers, separated by tabs."""

import numpy as np

from hugectr.data.arrow import csv, pa
from hugectr.data import batches
from hugectr.data import errors

_DENSE, _SLOTS = 13, 26
_NAMES = (["label"] + ["I%d" % (k + 1) for k in range(_DENSE)] +
          ["C%d" % (k + 1) for k in range(_SLOTS)])


def _digits(path, column, first, array):
  """Returns hexadecimal numbers of up to 8 digits, int64 `[N]`; missing ones are -1."""
  text = array.to_numpy(zero_copy_only=False).astype("S9")
  table = np.full([256], -1, np.int64)
  for k, digit in enumerate("0123456789abcdef"):
    table[ord(digit)] = table[ord(digit.upper())] = k
  characters = text.view(np.uint8).reshape([-1, 9])
  used = characters != 0
  values = table[characters]
  wrong = (used & (values < 0)).any(axis=1) | used[:, 8]
  if wrong.any():
    row = int(np.argmax(wrong))
    raise errors.DataError("%s: line %d, column %s: expected up to 8 hexadecimal digits, got "
                           "%r" % (path, first + row + 1, column, text[row].decode("latin1")))
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
  kinds = {n: pa.string() if n[0] == "C" else pa.int64() for n in _NAMES}
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
        raise errors.DataError("%s: after line %d: a label is missing" % (path, first))
      dense = np.stack([np.nan_to_num(c.to_numpy(zero_copy_only=False).astype(np.float64))
                        for c in columns[1:1 + _DENSE]], axis=1)
      slots = []
      for s, column in enumerate(columns[1 + _DENSE:]):
        number = _digits(path, _NAMES[1 + _DENSE + s], first, column)
        slots.append(batches.Slot(np.where(
            number < 0, 0, 1 + number % (data.slot_sizes[s] - 1)), None))
      yield batches.Chunk(columns[0].to_numpy(zero_copy_only=False)[:, None],
                          np.log1p(np.maximum(dense, 0)).astype(np.float32), slots)
      first += batch.num_rows
  except (pa.ArrowException, OSError) as e:
    raise errors.DataError("%s: after line %d: %s" % (path, first, e))

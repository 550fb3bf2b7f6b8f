# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Columns of a Parquet file as NumPy arrays."""

import numpy as np

from hugectr.data import arrow
from hugectr.data import batches
from hugectr.data import errors
from hugectr.data import native
from hugectr.data.arrow import pa


def _is_list(kind):
  return (pa.types.is_list(kind) or pa.types.is_large_list(kind) or
          pa.types.is_fixed_size_list(kind))


def _is_number(kind):
  return (pa.types.is_integer(kind) or pa.types.is_floating(kind) or
          pa.types.is_boolean(kind))


def _numbers(array):
  """Returns an Array of numbers without nulls as a NumPy array on the same memory.

  pyarrow's own conversion looks for pandas in each call, which takes longer than the
  rest, and `array.type.to_pandas_dtype` needs pandas in some versions.
  """
  if pa.types.is_boolean(array.type) or not len(array):
    return array.to_numpy(zero_copy_only=False)
  kind = ("f" if pa.types.is_floating(array.type) else
          "u" if pa.types.is_unsigned_integer(array.type) else "i")
  whole = np.frombuffer(array.buffers()[1], "%s%d" % (kind, array.type.bit_width // 8))
  return whole[array.offset:array.offset + len(array)]


class Columns(object):
  """Some rows of a Parquet file.

  Args:
    path: string, the file's path, for error messages.
    table: pyarrow.Table.
    first_row: int, number of the first row in the file, for error messages.
  """

  def __init__(self, path, table, first_row):
    self._path = path
    self._table = table
    self._first_row = first_row

  @property
  def rows(self):
    return self._table.num_rows

  def _fail(self, column, row, sentence, *args):
    where = "" if row is None else ", row %d" % (self._first_row + row)
    raise errors.DataError("%s: column '%s'%s: %s" %
                           (self._path, column, where, sentence % args))

  def _array(self, column):
    """Returns the column as one pyarrow Array without nulls."""
    found = self._table.column(column)
    # Each chunk has a dictionary of its own.
    chunks = [arrow.decoded(chunk) for chunk in found.chunks] or [
        arrow.decoded(pa.array([], found.type))]
    found = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
    if found.null_count:
      self._fail(column, int(np.argmax(found.is_null().to_numpy(zero_copy_only=False))),
                 "a null, which no column may have")
    return found

  def _flat(self, column, array):
    """Returns (values, offsets) of a list array; offsets start at 0."""
    if pa.types.is_fixed_size_list(array.type):
      # `flatten` omits values before the array's offset.
      values = array.flatten()
      offsets = np.arange(len(array) + 1, dtype=np.int64) * array.type.list_size
    else:
      offsets = _numbers(array.offsets).astype(np.int64)
      values = array.values.slice(offsets[0], offsets[-1] - offsets[0])
      offsets -= offsets[0]
    if values.null_count:
      at = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
      self._fail(column, int(np.searchsorted(offsets, at, "right")) - 1,
                 "a null in a list, which no column may have")
    return values, offsets

  def floats(self, column):
    """Returns a column of numbers, or of lists of one length, as float32 `[N, width]`."""
    array = self._array(column)
    if _is_list(array.type):
      if not _is_number(array.type.value_type):
        self._fail(column, None, "expected numbers, got %s", array.type)
      values, offsets = self._flat(column, array)
      lengths = np.diff(offsets)
      width = int(lengths[0]) if len(lengths) else 0
      if (lengths != width).any():
        row = int(np.argmax(lengths != width))
        self._fail(column, row, "expected a list of %d numbers, as in row %d, got %d",
                   width, self._first_row, lengths[row])
      return _numbers(values).astype(np.float32).reshape(
          [self.rows, width])
    if not _is_number(array.type):
      self._fail(column, None, "expected numbers, got %s", array.type)
    return _numbers(array).astype(np.float32, copy=False).reshape([-1, 1])

  def keys(self, column, offset, size, limit):
    """Returns a column of integers, or of lists of them, as a Slot.

    Args:
      column: string.
      offset: int, to be added to the keys; becomes the Slot's `added`.
      size: int, keys must be in [0, size); None: any.
      limit: int, keys must be in [0, limit) after adding the offset; None: any.
    """
    array, offsets = self._array(column), None
    kind = array.type
    if _is_list(kind):
      kind = kind.value_type
    if not pa.types.is_integer(kind):
      self._fail(column, None, "expected integers, or lists of them, got %s", array.type)
    if _is_list(array.type):
      array, offsets = self._flat(column, array)
    found = _numbers(array).astype(np.int64, copy=False)
    if size is not None and found.size:
      at = native.first_outside(found, size)
      if at is not None:
        self._fail(column, self._row_of(at, offsets), "key %d is not in [0, %d), of which "
                   "slot_size_array has %d", found[at], size, size)
    if limit is not None and found.size and (size is None or size + offset > limit):
      moved = found + offset
      wrong = moved.view(np.uint64) >= np.uint64(limit)
      if wrong.any():
        at = int(np.argmax(wrong))
        self._fail(column, self._row_of(at, offsets), "key %d does not fit "
                   "input_key_type I32", moved[at])
    return batches.Slot(found, offsets, offset)

  def _row_of(self, at, offsets):
    return at if offsets is None else int(np.searchsorted(offsets, at, "right")) - 1

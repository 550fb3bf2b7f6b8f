# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Columns of a block of rows, from which batches are cut as arrays that share its memory.

pyarrow decodes many batches at once, and each column's memory is wrapped once per block.
A batch then costs a slice of each array. Strings stay bytes and offsets, of which
`string_ops.split_bytes` makes a tensor without Python objects.
"""

import numpy as np

from embedding_variable.tools import arrow

_LONGEST = np.iinfo(np.int32).max


class Numbers(object):
  """A column of numbers; a batch is an array [B]."""

  # Arrays of a batch that hold values.
  num_values = 1

  def __init__(self, column, dtype):
    self._values = shared(column, dtype)

  def batch(self, begin, end):
    """Returns the list of arrays of the rows from `begin` to `end`."""
    return [self._values[begin:end]]


class Strings(object):
  """A column of strings; a batch is uint8 bytes and int32 offsets [B + 1]."""

  num_values = 2

  def __init__(self, column):
    _, offsets, data = column.buffers()
    count = len(column) + 1
    dtype = np.dtype(np.int64 if str(column.type).startswith("large_") else np.int32)
    self._offsets = (np.zeros([count], np.int32) if offsets is None else np.frombuffer(
        offsets, dtype, count, column.offset * dtype.itemsize))
    self._bytes = (np.zeros([0], np.uint8) if data is None else
                   np.frombuffer(data, np.uint8))

  def batch(self, begin, end):
    """Returns the list of arrays of the rows from `begin` to `end`."""
    offsets = self._offsets[begin:end + 1]
    found = self._bytes[offsets[0]:offsets[-1]]
    return [found, offsets if offsets.dtype == np.int32 else _splits(offsets)]


class Lists(object):
  """A column of lists; a batch is that of the values, with int32 row splits [B + 1]."""

  def __init__(self, column, inner):
    """Creates the column.

    Args:
      column: pyarrow's ListArray.
      inner: the column of `column.values`.
    """
    self._offsets = shared(
        column.offsets, np.int64 if str(column.type).startswith("large_") else np.int32)
    self._inner = inner
    self.num_values = inner.num_values

  def batch(self, begin, end):
    """Returns the list of arrays of the rows from `begin` to `end`."""
    offsets = self._offsets[begin:end + 1]
    found = self._inner.batch(int(offsets[0]), int(offsets[-1]))
    # The splits of outer lists come first.
    found.insert(self.num_values, _splits(offsets))
    return found


class Shaped(object):
  """A column whose rows have all the same shape; a batch is [B] + shape.

  The bytes and offsets of strings are reshaped when they are strings.
  """

  def __init__(self, column, field):
    self._column = column
    self._field = field
    self._size = field.shape.num_elements()
    self.num_values = column.num_values

  def batch(self, begin, end):
    """Returns the list of arrays of the rows from `begin` to `end`."""
    found = self._column.batch(begin, end)
    values, splits = found[:self.num_values], found[self.num_values:]
    if splits and np.any(np.diff(splits[0]) != self._size):
      raise ValueError("column '%s': a row has another number of values than its shape %s"
                       % (self._field.name, self._field.shape))
    count = values[-1].size - (self.num_values - 1)
    if count != (end - begin) * self._size:
      raise ValueError("column '%s': %d values do not fit %d rows of shape %s" %
                       (self._field.name, count, end - begin, self._field.shape))
    if self.num_values == 1:
      values = [values[0].reshape([end - begin] + self._field.shape.as_list())]
    return values


class WithNulls(object):
  """A column with nulls. Reading a batch with a null raises an error."""

  def __init__(self, column, inner, field):
    self._column = column
    self._inner = inner
    self._field = field
    self.num_values = inner.num_values

  def batch(self, begin, end):
    """Returns the list of arrays of the rows from `begin` to `end`."""
    count = self._column.slice(begin, end - begin).null_count
    if count:
      raise ValueError("column '%s' has %d nulls, which no tensor can hold" %
                       (self._field.name, count))
    return self._inner.batch(begin, end)


def _splits(offsets):
  """Returns offsets as int32 that begin at 0; those of large columns are int64."""
  found = offsets - offsets[0]
  if found[-1] > _LONGEST:
    raise ValueError("a batch has %d values or bytes in a column of strings or lists, the "
                     "most are %d: read smaller batches" % (found[-1], _LONGEST))
  return found.astype(np.int32, copy=False)


def shared(column, dtype):
  """Returns an array of numbers that shares pyarrow's memory.

  `column.to_numpy()` does the same, but looks for pandas in each call, which takes longer
  than reading 2048 rows.
  """
  dtype = np.dtype(dtype)
  memory = column.buffers()[1]
  if memory is None:
    return np.zeros([len(column)], dtype)
  return np.frombuffer(memory, dtype, len(column), column.offset * dtype.itemsize)


def of_field(field, column):
  """Returns the column of a field.

  Args:
    field: a complete `DataFrame.Field`.
    column: pyarrow's array, decoded (`arrow.decoded`).
  """
  made = _of_array(field, column)
  return made if field.shape is None else Shaped(made, field)


def _of_array(field, column):
  if arrow.is_list(column.type):
    made = Lists(column, _of_array(field, column.values))
  elif str(arrow.value_type(column.type)) in ("string", "binary"):
    made = Strings(column)
  else:
    made = Numbers(column, field.dtype.as_numpy_dtype)
  return WithNulls(column, made, field) if column.null_count else made

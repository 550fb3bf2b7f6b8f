# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads Parquet files by pyarrow into numpy arrays that tensors can share."""

import collections

import numpy as np

from embedding_variable.deeprec import dataframe
from embedding_variable.tf_names import compat
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import nest
from embedding_variable.tools import arrow

# Arrow's types, by name, of which a column or the values of its lists may be.
_TYPES = collections.OrderedDict([
    ("int8", dtypes.int8), ("uint8", dtypes.uint8), ("int32", dtypes.int32),
    ("int64", dtypes.int64), ("uint32", dtypes.uint32), ("uint64", dtypes.uint64),
    ("float", dtypes.float32), ("double", dtypes.float64),
    ("string", dtypes.string), ("binary", dtypes.string),
])


def fields_of(filename, fields, lower):
  """See `parquet_dataset.parquet_fields`."""
  pa = arrow.load()
  schema = pa.parquet.read_schema(filename)
  wanted = schema.names if fields is None else fields
  complete = []
  for field in wanted:
    if not isinstance(field, dataframe.DataFrame.Field):
      field = dataframe.DataFrame.Field(compat.as_str(field))
    name = field.name.lower() if lower else field.name
    if name not in schema.names:
      raise ValueError("%s has no column '%s'; it has %s" %
                       (filename, name, ", ".join(schema.names)))
    dtype, rank = _type_of(filename, name, schema.field(name).type)
    for what, given, found in (("dtype", field.dtype, dtype),
                               ("ragged_rank", field.ragged_rank, rank)):
      if given is not None and given != found and not (
          what == "ragged_rank" and field.shape is not None):
        raise ValueError("%s: column '%s' has %s %s, the field has %s" %
                         (filename, name, what, getattr(found, "name", found),
                          getattr(given, "name", given)))
    complete.append(dataframe.DataFrame.Field(name, dtype, rank, field.shape))
  names = [f.name for f in complete]
  if len(set(names)) < len(names):
    raise ValueError("ParquetDataset: fields have a name twice: %s" % ", ".join(names))
  if not complete:
    raise ValueError("ParquetDataset: there are no fields")
  return complete


def _type_of(filename, name, arrow_type):
  """Returns the (dtype, ragged_rank) of a column."""
  rank, inner = 0, arrow_type
  while str(inner).startswith("list<"):
    rank, inner = rank + 1, inner.value_type
  dtype = _TYPES.get(str(inner))
  if dtype is None:
    raise ValueError(
        "%s: column '%s' has type %s, which is not supported; name the columns to read in "
        "fields=. Supported are %s, and lists of them" %
        (filename, name, arrow_type, ", ".join(_TYPES)))
  return dtype, rank


class Reader(object):
  """Yields the batches of files as flat lists of arrays, in the order of `nest.flatten`.

  Thread-safe."""

  def __init__(self, fields, batch_size, partition_count, partition_index,
               drop_remainder):
    self._fields = fields
    self._batch_size = batch_size
    self._partition = (partition_index, partition_count)
    self._drop_remainder = drop_remainder
    self._arrow = arrow.load()

  def of_file(self, filename):
    """Yields the batches of one file."""
    return self._batches([filename])

  def of_files(self, filenames):
    """Yields the batches of files as if they were one."""
    return self._batches(filenames)

  def _batches(self, filenames):
    """Cuts what pyarrow reads to batches of the same size."""
    parts, rows = [], 0
    for part in self._parts(filenames):
      parts.append(part)
      rows += part.num_rows
      # pyarrow's own batches have the size already, except at the end of a file.
      while rows >= self._batch_size:
        batch, parts = self._cut(parts)
        rows -= self._batch_size
        yield self._arrays(batch)
    if rows and not self._drop_remainder:
      yield self._arrays(self._cut(parts)[0])

  def _parts(self, filenames):
    """Yields pyarrow's record batches."""
    names = [f.name for f in self._fields]
    for filename in filenames:
      path = compat.as_str(filename)
      with self._arrow.parquet.ParquetFile(path, memory_map=True) as file:
        self._check_schema(path, file.schema_arrow)
        groups = list(range(self._partition[0], file.num_row_groups, self._partition[1]))
        if not groups:
          continue
        for batch in file.iter_batches(self._batch_size, row_groups=groups,
                                       columns=names):
          if batch.num_rows:
            yield batch

  def _check_schema(self, path, schema):
    for field in self._fields:
      if field.name not in schema.names:
        raise ValueError("%s has no column '%s'" % (path, field.name))
      dtype, rank = _type_of(path, field.name, schema.field(field.name).type)
      if dtype != field.dtype or (rank != field.ragged_rank and field.shape is None):
        raise ValueError("%s: column '%s' is %s with ragged_rank %d, expected %s with %d" %
                         (path, field.name, dtype.name, rank, field.dtype.name,
                          field.ragged_rank))

  def _cut(self, parts):
    """Returns the first batch of parts, and the parts that remain."""
    if parts[0].num_rows == self._batch_size or len(parts) == 1:
      if parts[0].num_rows <= self._batch_size:
        return parts[0], parts[1:]
    table = self._arrow.Table.from_batches(parts)
    first = table.slice(0, self._batch_size).combine_chunks().to_batches()[0]
    return first, [b for b in table.slice(self._batch_size).to_batches() if b.num_rows]

  def _arrays(self, batch):
    """Returns the flat list of a record batch."""
    columns = {name: batch.column(i) for i, name in enumerate(batch.schema.names)}
    return nest.flatten(
        {f.name: self._value(f, columns[f.name]) for f in self._fields})

  def _value(self, field, column):
    rows, splits = len(column), []
    while str(column.type).startswith("list<"):
      _check_nulls(field, column)
      offsets = _shared(column.offsets, np.dtype(np.int32))
      # An array may be a slice, whose offsets do not start with 0.
      splits.append(np.subtract(offsets, offsets[0], dtype=np.int32))
      column = column.flatten()
    _check_nulls(field, column)
    values = self._numpy(field, column)
    if field.shape is not None:
      return _reshaped(field, values, rows, splits)
    if not splits:
      return values
    return dataframe.DataFrame.Value(values, splits)

  def _numpy(self, field, column):
    if field.dtype == dtypes.string:
      if str(column.type) == "string":
        column = column.cast(self._arrow.binary())
      return column.to_numpy(zero_copy_only=False)
    return _shared(column, field.dtype.as_numpy_dtype)


def _shared(column, dtype):
  """Returns an array of numbers that shares pyarrow's memory.

  `column.to_numpy()` does the same, but looks for pandas in each call, which takes longer
  than reading 2048 rows.
  """
  dtype = np.dtype(dtype)
  memory = column.buffers()[1]
  if memory is None:
    return np.zeros([0], dtype)
  return np.frombuffer(memory, dtype, len(column), column.offset * dtype.itemsize)


def _check_nulls(field, column):
  if column.null_count:
    raise ValueError("column '%s' has %d nulls, which no tensor can hold" %
                     (field.name, column.null_count))


def _reshaped(field, values, rows, splits):
  """Returns the values as [rows] + shape, if every row has as many."""
  size = field.shape.num_elements()
  if splits and np.any(np.diff(splits[0]) != size):
    raise ValueError("column '%s': a row has another number of values than its shape %s" %
                     (field.name, field.shape))
  if values.size != rows * size:
    raise ValueError("column '%s': %d values do not fit %d rows of shape %s" %
                     (field.name, values.size, rows, field.shape))
  return values.reshape([rows] + field.shape.as_list())

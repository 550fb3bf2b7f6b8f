# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads Parquet files by pyarrow into numpy arrays that tensors can share."""

import collections

from embedding_variable.deeprec import dataframe
from embedding_variable.deeprec import parquet_columns
from embedding_variable.ops import string_ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import compat
from embedding_variable.tf_names import dtypes
from embedding_variable.tools import arrow

# Arrow's types, by name, of which a column or the values of its lists may be.
_TYPES = collections.OrderedDict([
    ("int8", dtypes.int8), ("uint8", dtypes.uint8), ("int32", dtypes.int32),
    ("int64", dtypes.int64), ("uint32", dtypes.uint32), ("uint64", dtypes.uint64),
    ("float", dtypes.float32), ("double", dtypes.float64),
    ("string", dtypes.string), ("binary", dtypes.string),
])

# Bytes that pyarrow decodes at once, and the most batches of which they may be.
_PART_BYTES = 8 << 20
_MAX_BATCHES = 32

# Bytes of a value in memory; files store values in less.
_LEAST_BYTES = 8


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
  while arrow.is_list(inner):
    rank, inner = rank + 1, inner.value_type
  dtype = _TYPES.get(str(arrow.value_type(inner)))
  if dtype is None:
    raise ValueError(
        "%s: column '%s' has type %s, which is not supported; name the columns to read in "
        "fields=. Supported are %s, dictionaries of them (pandas' categories), and lists "
        "of them" %
        (filename, name, arrow_type, ", ".join(_TYPES)))
  return dtype, rank


class Reader(object):
  """Yields the batches of files as flat lists of arrays; see `raw_types`.

  Thread-safe."""

  def __init__(self, fields, batch_size, partition_count, partition_index,
               drop_remainder):
    self._fields = list(fields)
    self._batch_size = batch_size
    self._partition = (partition_index, partition_count)
    self._drop_remainder = drop_remainder
    self._arrow = arrow.load()

  @property
  def raw_types(self):
    """List of the dtypes of a batch's arrays: strings are bytes and offsets."""
    return [t for f in self._fields for t in _raw_types(f)]

  def tensors(self, arrays):
    """Returns the dict of a batch: tensors, and `DataFrame.Value`s for lists.

    Args:
      arrays: list of the tensors of a batch's arrays.
    """
    arrays, values = iter(arrays), {}
    for field in self._fields:
      own = [next(arrays) for _ in _raw_types(field)]
      if field.dtype == dtypes.string:
        own[:2] = [string_ops.split_bytes(*own[:2])]
        if field.shape is not None:
          own[0] = array_ops.reshape(own[0], [-1] + field.shape.as_list())
      values[field.name] = own[0] if field.is_dense else dataframe.DataFrame.Value(
          own[0], own[1:])
    return values

  def of_file(self, filename):
    """Yields the batches of one file."""
    return self._batches([filename])

  def of_files(self, filenames):
    """Yields the batches of files as if they were one."""
    return self._batches(filenames)

  def _batches(self, filenames):
    """Cuts what pyarrow reads to batches of the same size."""
    rest, rows, size = [], 0, self._batch_size
    for part in self._parts(filenames):
      begin = 0
      if rows:
        # A batch that has begun in the part before, such as the last of a row group.
        begin = min(size - rows, part.num_rows)
        rest.append(part.slice(0, begin))
        rows += begin
        if rows < size:
          continue
        yield self._cut(self._columns(self._joined(rest)), 0, size)
        rest, rows = [], 0
      columns = self._columns(part)
      while begin + size <= part.num_rows:
        yield self._cut(columns, begin, begin + size)
        begin += size
      if begin < part.num_rows:
        rest, rows = [part.slice(begin)], part.num_rows - begin
    if rows and not self._drop_remainder:
      yield self._cut(self._columns(self._joined(rest)), 0, rows)

  def _parts(self, filenames):
    """Yields pyarrow's record batches, each of many batches."""
    names = [f.name for f in self._fields]
    for filename in filenames:
      path = compat.as_str(filename)
      with arrow.opened(path) as file:
        self._check_schema(path, file.schema_arrow)
        groups = list(range(self._partition[0], file.num_row_groups, self._partition[1]))
        if not groups:
          continue
        for part in file.iter_batches(
            self._batch_size * self._batches_of_part(file.metadata, groups[0]),
            row_groups=groups, columns=names):
          if part.num_rows:
            yield self._arrow.RecordBatch.from_arrays(
                [arrow.decoded(column) for column in part.columns], part.schema.names)

  def _batches_of_part(self, metadata, group):
    """Returns how many batches to decode at once."""
    group = metadata.row_group(group)
    row_bytes = max(_LEAST_BYTES * len(self._fields),
                    group.total_byte_size // max(1, group.num_rows))
    return int(min(_MAX_BATCHES, max(1, _PART_BYTES // (row_bytes * self._batch_size))))

  def _check_schema(self, path, schema):
    for field in self._fields:
      if field.name not in schema.names:
        raise ValueError("%s has no column '%s'" % (path, field.name))
      dtype, rank = _type_of(path, field.name, schema.field(field.name).type)
      if dtype != field.dtype or (rank != field.ragged_rank and field.shape is None):
        raise ValueError("%s: column '%s' is %s with ragged_rank %d, expected %s with %d" %
                         (path, field.name, dtype.name, rank, field.dtype.name,
                          field.ragged_rank))

  def _joined(self, parts):
    """Returns one record batch of several."""
    if len(parts) == 1:
      return parts[0]
    return self._arrow.Table.from_batches(parts).combine_chunks().to_batches()[0]

  def _columns(self, part):
    """Returns the columns of a record batch, in the order of the fields."""
    places = {name: i for i, name in enumerate(part.schema.names)}
    return [parquet_columns.of_field(f, part.column(places[f.name]))
            for f in self._fields]

  def _cut(self, columns, begin, end):
    """Returns the flat list of the arrays of rows."""
    return [array for column in columns for array in column.batch(begin, end)]


def _raw_types(field):
  """Returns the dtypes of the arrays of a batch of a field."""
  values = [dtypes.uint8, dtypes.int32] if field.dtype == dtypes.string else [field.dtype]
  return values + [dtypes.int32] * (0 if field.is_dense else field.ragged_rank)

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DeepRec's ParquetDataset: batches of Parquet columns, read by pyarrow.

  dataset = parquet_dataset.ParquetDataset(["a.parquet"], batch_size=2048)
  features = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()

pyarrow and pyarrow-hotfix must be installed.
"""

from embedding_variable.deeprec import array_dataset
from embedding_variable.deeprec import dataframe
from embedding_variable.deeprec import parquet_reader
from embedding_variable.tf_names import autograph
from embedding_variable.tf_names import compat
from embedding_variable.tf_names import dataset_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import interleave_ops
from embedding_variable.tf_names import nest
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import tensor_shape
from embedding_variable.variables import number_checks


class ParquetDataset(dataset_ops.DatasetV1Adapter):
  """Batches of the rows of Parquet files.

  An element is a dict from names, in the order of the fields, to a tensor `[B]`, or to a
  `DataFrame.Value` for a column of lists. A batch has rows of one file, so the last one
  of each file may be short, unless `cross_files` is set.
  """

  def __init__(self, filenames, batch_size=1, fields=None, partition_count=1,
               partition_index=0, drop_remainder=False, num_parallel_reads=None,
               num_sequential_reads=1, cross_files=False):
    """Creates the dataset.

    Args:
      filenames: string, list or tuple of strings, string tensor of rank 0 or 1, or
        Dataset of string scalars. The last two need complete fields.
      batch_size: int >= 1, rows.
      fields: None: all columns of the first file, read now; or a list of names and
        `DataFrame.Field`s, of which incomplete ones are read from the first file.
      partition_count: int >= 1. Of each file only every `partition_count`-th row group
        is read.
      partition_index: int, the first of these row groups.
      drop_remainder: bool, whether to drop short batches.
      num_parallel_reads: None: files are read one after the other; int or AUTOTUNE: so
        many files at a time, in no fixed order.
      num_sequential_reads: int >= 1, batches from a file before those of the next.
      cross_files: bool; True: a batch may have rows of several files, and only the last
        one is short. Needs file names as strings, read one after the other.

    Raises:
      ValueError: a number is out of its range, there is no file, a column does not
        exist or has a type that is not supported, or fields are incomplete.
      TypeError: `filenames` are not strings.
      ImportError: pyarrow is not installed.
    """
    for name, value, least in (("batch_size", batch_size, 1),
                               ("partition_count", partition_count, 1),
                               ("partition_index", partition_index, 0),
                               ("num_sequential_reads", num_sequential_reads, 1)):
      if not number_checks.is_int(value, least):
        raise ValueError("ParquetDataset: %s: expected an integer of at least %d, got %r" %
                         (name, least, value))
    if partition_index >= partition_count:
      raise ValueError("ParquetDataset: partition_index: expected a number below partition_count, "
                       "got %d of %d" % (partition_index, partition_count))
    files, known = _files(filenames)
    self._fields = _complete(fields, known)
    reader = parquet_reader.Reader(self._fields, batch_size, partition_count,
                                   partition_index, drop_remainder)
    shapes = [shape for name in nest.flatten({f.name: f for f in self._fields})
              for shape in name.flat_shapes(batch_size if drop_remainder else None)]

    def pack(arrays):
      element = reader.tensors(arrays)
      for tensor, shape in zip(nest.flatten(element), shapes):
        tensor.set_shape(shape)
      return element

    @autograph.do_not_convert
    def of_file(name):
      return array_dataset.from_arrays(reader.of_file, name, reader.raw_types, pack)

    if cross_files:
      if known is None or num_parallel_reads is not None:
        raise ValueError("ParquetDataset: cross_files needs filenames as strings, and no "
                         "num_parallel_reads")
      dataset = array_dataset.from_arrays(
          reader.of_files, ops.convert_to_tensor(known), reader.raw_types, pack)
    elif num_parallel_reads is None:
      dataset = files.flat_map(of_file)
    elif num_parallel_reads == dataset_ops.AUTOTUNE:
      dataset = files.interleave(of_file, block_length=num_sequential_reads,
                                 num_parallel_calls=num_parallel_reads)
    else:
      dataset = files.apply(interleave_ops.parallel_interleave(
          of_file, cycle_length=num_parallel_reads, block_length=num_sequential_reads,
          sloppy=True))
    super(ParquetDataset, self).__init__(dataset)

  @property
  def fields(self):
    """List of the `DataFrame.Field`s."""
    return list(self._fields)

  @classmethod
  def read_schema(cls, filename, fields=None, lower=False):
    """Returns the `DataFrame.Field`s of a file; see `parquet_fields`."""
    return parquet_fields(filename, fields, lower)


def read_parquet(batch_size, fields=None, partition_count=1, partition_index=0,
                 drop_remainder=False, num_parallel_reads=None, num_sequential_reads=1):
  """Returns a function for `Dataset.apply` over file names; see `ParquetDataset`."""

  def apply(filenames):
    return ParquetDataset(filenames, batch_size, fields, partition_count, partition_index,
                          drop_remainder, num_parallel_reads, num_sequential_reads)

  return apply


def parquet_fields(filename, fields=None, lower=False):
  """Returns the complete fields of a file.

  Args:
    filename: string.
    fields: None for all columns, or a list of names and `DataFrame.Field`s.
    lower: bool, whether to look for a name in lower case.

  Raises:
    ValueError: a column does not exist, its type is not supported or not the given one.
  """
  return parquet_reader.fields_of(filename, fields, lower)


def parquet_filenames_and_fields(filenames, fields=None, lower=False):
  """Returns the file names as a tensor or Dataset, and the complete fields."""
  files, known = _files(filenames)
  return files, _complete(fields, known, lower)


def _files(filenames):
  """Returns the Dataset of file names, and their list if they are known."""
  if isinstance(filenames, dataset_ops.DatasetV2):
    if dataset_ops.get_legacy_output_types(filenames) != dtypes.string:
      raise TypeError("ParquetDataset: a Dataset of filenames: expected string scalars")
    if not tensor_shape.TensorShape([]).is_compatible_with(
        dataset_ops.get_legacy_output_shapes(filenames)):
      raise TypeError("ParquetDataset: a Dataset of filenames: expected string scalars")
    return filenames, None
  if isinstance(filenames, (str, bytes)):
    filenames = [filenames]
  if isinstance(filenames, (list, tuple)):
    if not all(isinstance(f, (str, bytes)) for f in filenames):
      raise TypeError("ParquetDataset: filenames: expected strings, got %r" % (filenames,))
    if not filenames:
      raise ValueError("ParquetDataset: filenames are an empty list")
    known = [compat.as_str(f) for f in filenames]
    return dataset_ops.Dataset.from_tensor_slices(known), known
  filenames = ops.convert_to_tensor(filenames)
  if filenames.dtype != dtypes.string or filenames.shape.ndims not in (0, 1):
    raise TypeError("ParquetDataset: filenames: expected a string tensor of rank 0 or 1, "
                    "got %s" % filenames)
  if filenames.shape.ndims == 0:
    return dataset_ops.Dataset.from_tensors(filenames), None
  return dataset_ops.Dataset.from_tensor_slices(filenames), None


def _complete(fields, files, lower=False):
  """Returns complete fields, read from the first file if there is a list of files."""
  if files is not None:
    return parquet_fields(files[0], fields, lower)
  if not fields or not all(isinstance(f, dataframe.DataFrame.Field) and
                           not f.incomplete for f in fields):
    raise ValueError(
        "ParquetDataset: filenames that are a tensor or a Dataset, such as those of a "
        "WorkQueue, need fields=[DataFrame.Field(name, dtype, ragged_rank), ...]; got %r"
        % (fields,))
  return list(fields)

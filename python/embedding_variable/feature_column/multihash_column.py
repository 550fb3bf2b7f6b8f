# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`categorical_column_with_multihash`: columns on `tf.get_multihash_variable`."""

import collections
import numbers

from embedding_variable.feature_column import categorical
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import feature_column as fc_v1
from embedding_variable.tf_names import feature_column_utils as fc_utils
from embedding_variable.tf_names import feature_column_v2 as fc
from embedding_variable.tf_names import partitioned_variables
from embedding_variable.variables import multihash
from embedding_variable.variables import number_checks


class MultihashSize(int):
  """Number of ids of a multihash column; passed around like `categorical.TableSize`.

  Attributes:
    column: the `MultihashCategoricalColumn`.
  """

  def __new__(cls, column):
    self = super(MultihashSize, cls).__new__(cls, column.rows[0]**2)
    self.column = column
    return self


def categorical_column_with_multihash(key, dims, complementary_strategy="Q-R",
                                      operation="concat", dtype=dtypes.int64,
                                      partition_num=None, num_of_partitions=2):
  """Creates a categorical column whose rows are combined from two small tables.

  An `embedding_column` of it uses a `tf.get_multihash_variable`.

  Args:
    key: string, name of the feature.
    dims: two ints, rows of Q and of R; or two shapes `[rows, dim]`. Ids are in [0,
      `rows(Q)^2`).
    complementary_strategy: must be "Q-R".
    operation: "concat", "add" or "mul", see `tf.get_multihash_variable`. With "concat"
      the length of the column's output is that of a row of Q plus that of a row of R.
    dtype: an integer type (ids are used as they are; those below 0 count as missing) or
      `tf.string` (hashed by `tf.strings.to_hash_bucket_fast`).
    partition_num: int, number of parts of Q and of R; None: use the variable scope's
      partitioner.
    num_of_partitions: must be 2.

  Returns:
    A categorical column. `embedding_column(column, dimension)` takes the length of both
      tables' rows, or a pair of lengths.

  Raises:
    ValueError: another `dtype`, `complementary_strategy` or `operation`, `dims` does
      not have two elements, or `partition_num` is below 1.
  """
  dtype = dtypes.as_dtype(dtype)
  fc_utils.assert_string_or_int(dtype, prefix="column_name: {}".format(key))
  dims = tuple(dims) if isinstance(dims, (list, tuple)) else (dims,)
  if len(dims) != 2 or num_of_partitions != 2:
    raise ValueError("column '%s': dims: expected 2, of Q and R, got %r" % (key, dims))
  if complementary_strategy != "Q-R":
    raise ValueError("column '%s': complementary_strategy: expected 'Q-R', got %r" %
                     (key, complementary_strategy))
  if operation not in multihash.OPERATIONS:
    raise ValueError("column '%s': operation: expected one of %s, got %r" %
                     (key, ", ".join(multihash.OPERATIONS), operation))
  if partition_num is not None and not number_checks.is_int(partition_num, 1):
    raise ValueError("column '%s': partition_num: expected an integer of at least 1, got %r" %
                     (key, partition_num))
  lengths = None
  if all(isinstance(d, (list, tuple)) and len(d) == 2 for d in dims):
    dims, lengths = tuple(d[0] for d in dims), tuple(int(d[1]) for d in dims)
  if not all(isinstance(d, numbers.Integral) and d >= 1 for d in dims):
    raise ValueError("column '%s': dims: expected two numbers of rows or two shapes [rows, "
                     "dim], got %r" % (key, dims))
  return MultihashCategoricalColumn(key, dtype, tuple(int(d) for d in dims), lengths,
                                    complementary_strategy, operation, partition_num)


def find(column):
  """Returns the `MultihashCategoricalColumn` inside a column, or None."""
  while column is not None:
    if isinstance(column, MultihashCategoricalColumn):
      return column
    column = categorical.inside(column)
  return None


def with_lengths(column, dimension):
  """Returns a categorical column with the lengths of its rows, and the output's length.

  Args:
    column: a categorical column that is or wraps a multihash one.
    dimension: int or pair of ints, as passed to `embedding_column`.

  Returns:
    (column, int: length of a lookup's result).

  Raises:
    ValueError: `dimension` contradicts the column's own dims, or an int is below 1.
  """
  if not isinstance(column, MultihashCategoricalColumn):
    inner, length = with_lengths(column.categorical_column, dimension)
    return column._replace(categorical_column=inner), length
  lengths = tuple(dimension) if isinstance(dimension, (list, tuple)) else (dimension,) * 2
  if len(lengths) != 2 or not all(
      isinstance(n, numbers.Integral) and n >= 1 for n in lengths):
    raise ValueError("column '%s': dimension: expected one length of rows or two, got %r" %
                     (column.key, dimension))
  if column.lengths not in (None, lengths):
    raise ValueError("column '%s': dims give rows the lengths %r, but dimension "
                     "is %r" % (column.key, column.lengths, dimension))
  if column.operation != "concat" and lengths[0] != lengths[1]:
    raise ValueError("column '%s': rows to %s: expected one length, got %d and %d" %
                     ((column.key, column.operation) + lengths))
  total = sum(lengths) if column.operation == "concat" else lengths[0]
  return column._replace(lengths=lengths), total


class MultihashCategoricalColumn(
    categorical.CategoricalOfIds,
    fc.CategoricalColumn,
    fc_v1._CategoricalColumn,  # pylint: disable=protected-access
    collections.namedtuple("MultihashCategoricalColumn",
                           ("key", "dtype", "rows", "lengths",
                            "complementary_strategy", "operation", "partition_num"))):
  """See `categorical_column_with_multihash`."""

  @property
  def partitioner(self):
    """The partitioner of Q and R; None: the variable scope's."""
    if self.partition_num is None:
      return None
    return partitioned_variables.fixed_size_partitioner(self.partition_num)

  @property
  def num_buckets(self):
    return MultihashSize(self)

  @property
  def shapes(self):
    """The shapes of Q and R, available after `with_lengths`."""
    return [list(shape) for shape in zip(self.rows, self.lengths)]

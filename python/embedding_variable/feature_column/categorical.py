# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`categorical_column_with_embedding`, its sequence and its adaptive variant.

They can be used wherever a categorical column can: in `embedding_column`,
`shared_embedding_columns`, `weighted_categorical_column` and `linear_model`. These then
create an embedding variable.
"""

import collections
import numbers

from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import feature_column as fc_v1
from embedding_variable.tf_names import feature_column_utils as fc_utils
from embedding_variable.tf_names import feature_column_v2 as fc
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import parsing_ops
from embedding_variable.tf_names import sparse_tensor
from embedding_variable.tf_names import string_ops
from embedding_variable.variables import options

# Number of buckets with which `tf.strings.to_hash_bucket_fast` converts strings to
# keys.
STRING_BUCKETS = 2**63 - 1


class TableSize(int):
  """Number of rows of an unbounded table.

  Stock code passes it around as a column's number of buckets; it remembers its column.

  Attributes:
    column: the `TableColumn`.
  """

  def __new__(cls, column):
    self = super(TableSize, cls).__new__(cls, STRING_BUCKETS)
    self.column = column
    return self


def categorical_column_with_embedding(key, dtype=dtypes.string, partition_num=None,
                                      ev_option=None):
  """Creates a categorical column for any ids, without a vocabulary or buckets.

  Integers are used as keys; strings are hashed by `tf.strings.to_hash_bucket_fast` into
  [0, 2^63 - 1). As in every stock column, ids below 0 count as missing.

  Args:
    key: string, name of the feature.
    dtype: `tf.string` or an integer type, type of the feature.
    partition_num: int, number of parts of the table; None: use the variable scope's
      partitioner.
    ev_option: `EmbeddingVariableOption`; None: the defaults. Its initializer takes
      precedence over that of `embedding_column`.

  Returns:
    A categorical column.

  Raises:
    ValueError: another `dtype`.
  """
  dtype = dtypes.as_dtype(dtype)
  fc_utils.assert_string_or_int(dtype, prefix="column_name: {}".format(key))
  return EmbeddingCategoricalColumn(key, dtype, partition_num, ev_option or
                                    options.EmbeddingVariableOption(), None)


def categorical_column_with_adaptive_embedding(key, hash_bucket_size,
                                               dtype=dtypes.string, partition_num=None,
                                               ev_option=None):
  """Creates a categorical column in which only some ids have a row of their own.

  An `embedding_column` of it has two tables: an embedding variable and a dense one of
  `hash_bucket_size` rows. It can only be used in `tf.feature_column.input_layer`, with
  a mask that selects the table of each id:

    input_layer(features, columns, adaptive_mask_tensors={key: mask})

  Args:
    key: string, name of the feature.
    hash_bucket_size: int >= 1, rows that the other ids share: id `k` has row
      `floormod(k, hash_bucket_size)`.
    dtype: see `categorical_column_with_embedding`.
    partition_num: see that function; applies to the embedding variable.
    ev_option: see that function.

  Returns:
    A categorical column.

  Raises:
    ValueError: another `dtype`, or `hash_bucket_size` below 1.
  """
  if isinstance(hash_bucket_size, bool) or not isinstance(
      hash_bucket_size, numbers.Integral) or hash_bucket_size < 1:
    raise ValueError("column '%s': hash_bucket_size: expected an integer of at least 1, got "
                     "%r" % (key, hash_bucket_size))
  column = categorical_column_with_embedding(key, dtype, partition_num, ev_option)
  return column._replace(hash_bucket_size=int(hash_bucket_size))


def sequence_categorical_column_with_embedding(key, dtype=dtypes.string,
                                               partition_num=None, ev_option=None):
  """Creates the sequence variant, for `sequence_input_layer` and `SequenceFeatures`.

  Args:
    key: string, name of the feature.
    dtype: see `categorical_column_with_embedding`.
    partition_num: see `categorical_column_with_embedding`.
    ev_option: see `categorical_column_with_embedding`.

  Returns:
    A `SequenceCategoricalColumn`.
  """
  return fc.SequenceCategoricalColumn(
      categorical_column_with_embedding(key, dtype, partition_num, ev_option))


class TableColumn(object):
  """A categorical column whose table is an embedding variable.

  Attributes:
    key: string, for messages.
    partition_num: int or None.
    ev_option: `EmbeddingVariableOption`.
    hash_bucket_size: int for an adaptive column, else None.
  """


def find(column):
  """Returns the `TableColumn` inside a column, or None.

  Args:
    column: a feature column that may wrap a categorical one (weighted, sequence,
      embedding).
  """
  while column is not None:
    if isinstance(column, TableColumn):
      return column
    column = inside(column)
  return None


def inside(column):
  """Returns the column wrapped by another one, with core's or contrib's name; or None."""
  return getattr(column, "categorical_column",
                 getattr(column, "sparse_id_column", None))


def is_sequence(column):
  """Returns whether a column is, or wraps, a sequence column."""
  while column is not None:
    if isinstance(column, (fc.SequenceCategoricalColumn,
                           fc_v1._SequenceCategoricalColumn)):  # pylint: disable=protected-access
      return True
    column = inside(column)
  return False


class CategoricalOfIds(object):
  """Base of columns of ids without a vocabulary.

  Derived classes are named tuples with a `key` and a `dtype`, and define `num_buckets`.
  """

  @property
  def _is_v2_column(self):
    return True

  @property
  def name(self):
    return self.key

  @property
  def parse_example_spec(self):
    return {self.key: parsing_ops.VarLenFeature(self.dtype)}

  @property
  def _parse_example_spec(self):
    return self.parse_example_spec

  def _to_ids(self, values):
    """Returns the SparseTensor of int64 keys of a feature."""
    values = fc._to_sparse_input_and_drop_ignore_values(values)  # pylint: disable=protected-access
    if values.dtype.is_integer != self.dtype.is_integer:
      raise ValueError(
          "column '%s': the column's dtype is %s, but the feature's is %s" %
          (self.key, self.dtype.name, values.dtype.name))
    if values.dtype == dtypes.string:
      ids = string_ops.string_to_hash_bucket_fast(
          values.values, int(self.num_buckets), name="lookup")
    elif values.dtype.is_integer:
      ids = math_ops.cast(values.values, dtypes.int64)
    else:
      raise ValueError("column '%s': the feature: expected strings or integers, "
                       "got %s" % (self.key, values.dtype.name))
    return sparse_tensor.SparseTensor(values.indices, ids, values.dense_shape)

  def transform_feature(self, transformation_cache, state_manager):
    return self._to_ids(transformation_cache.get(self.key, state_manager))

  def _transform_feature(self, inputs):
    return self._to_ids(inputs.get(self.key))

  @property
  def _num_buckets(self):
    return self.num_buckets

  def get_sparse_tensors(self, transformation_cache, state_manager):
    return fc.CategoricalColumn.IdWeightPair(
        transformation_cache.get(self, state_manager), None)

  def _get_sparse_tensors(self, inputs, weight_collections=None, trainable=None):
    del weight_collections, trainable
    return fc.CategoricalColumn.IdWeightPair(inputs.get(self), None)

  @property
  def parents(self):
    return [self.key]

  def _get_config(self):
    raise NotImplementedError(
        "column '%s': %s is not serializable" %
        (self.key, type(self).__name__))

  @classmethod
  def _from_config(cls, config, custom_objects=None, columns_by_name=None):
    raise NotImplementedError(
        "a %s is not serializable" % cls.__name__)


class EmbeddingCategoricalColumn(
    TableColumn,
    CategoricalOfIds,
    fc.CategoricalColumn,
    fc_v1._CategoricalColumn,  # pylint: disable=protected-access
    collections.namedtuple("EmbeddingCategoricalColumn",
                           ("key", "dtype", "partition_num", "ev_option",
                            "hash_bucket_size"))):
  """See `categorical_column_with_embedding`; adaptive with a `hash_bucket_size`."""

  @property
  def num_buckets(self):
    return TableSize(self)

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.contrib.layers.sparse_column_with_embedding`.

Imports `tf.contrib.layers`, which takes seconds, so it is imported only after a script
has imported that.
"""

from tensorflow.contrib.layers.python.layers import feature_column as contrib_fc

from embedding_variable.feature_column import categorical
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import feature_column_utils as fc_utils
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import sparse_tensor
from embedding_variable.tf_names import string_ops
from embedding_variable.variables import creation
from embedding_variable.variables import options


def sparse_column_with_embedding(column_name,
                                 dtype=dtypes.string,
                                 partition_num=None,
                                 steps_to_live=None,
                                 init_data_source=None,
                                 ht_partition_num=1000,
                                 ev_option=None,
                                 combiner="sum",
                                 evconfig=None):
  """Creates a sparse column for any ids, without a vocabulary or buckets.

  For `tf.contrib.layers.embedding_column`, `shared_embedding_columns`,
  `weighted_sparse_column` and `weighted_sum_from_feature_columns`.

  Args:
    column_name: string, name of the feature.
    dtype: `tf.string` or an integer type. Converted to keys as in
      `tf.feature_column.categorical_column_with_embedding`.
    partition_num: int, number of parts of the table; None: use the variable scope's
      partitioner.
    steps_to_live: deprecated: `GlobalStepEvict(steps_to_live)` in `ev_option`.
    init_data_source: must be None.
    ht_partition_num: accepted for compatibility.
    ev_option: `EmbeddingVariableOption`; None: the defaults.
    combiner: "sum", "mean" or "sqrtn", of a linear model.
    evconfig: an earlier name of `ev_option`.

  Returns:
    A sparse column of `tf.contrib.layers`.

  Raises:
    ValueError: another `dtype`; `ev_option` and `evconfig` are both given.
    NotImplementedError: `init_data_source` is given.
  """
  del ht_partition_num
  if ev_option is not None and evconfig is not None:
    raise ValueError("column '%s': evconfig is an earlier name of ev_option; both are "
                     "given" % column_name)
  dtype = dtypes.as_dtype(dtype)
  fc_utils.assert_string_or_int(dtype, prefix="column_name: {}".format(column_name))
  option = creation.with_old_arguments(
      column_name, steps_to_live, init_data_source,
      ev_option or evconfig or options.EmbeddingVariableOption())
  return SparseEmbeddingColumn(column_name, dtype, combiner, partition_num, option)


class SparseEmbeddingColumn(categorical.TableColumn, contrib_fc._SparseColumn):  # pylint: disable=protected-access
  """See `sparse_column_with_embedding`."""

  def __new__(cls, column_name, dtype, combiner, partition_num, ev_option):
    self = super(SparseEmbeddingColumn, cls).__new__(
        cls, column_name, bucket_size=categorical.STRING_BUCKETS, combiner=combiner,
        dtype=dtype)
    self.partition_num = partition_num
    self.ev_option = ev_option
    return self

  def __getnewargs__(self):
    return (self.column_name, self.dtype, self.combiner, self.partition_num,
            self.ev_option)

  # No column of this kind is adaptive.
  hash_bucket_size = None

  @property
  def length(self):
    return categorical.TableSize(self)

  def is_compatible(self, other_column):
    """Whether two columns can share a table: both are of this kind."""
    return (isinstance(other_column, SparseEmbeddingColumn) and
            self.dtype.is_integer == other_column.dtype.is_integer)

  def _do_transform(self, input_tensor):
    """Returns the SparseTensor of int64 keys."""
    values = input_tensor.values
    if self.dtype.is_integer != values.dtype.is_integer or not (
        values.dtype.is_integer or values.dtype == dtypes.string):
      raise ValueError("column '%s': the column's dtype is %s, but the feature's is %s" %
                       (self.column_name, self.dtype.name, values.dtype.name))
    if values.dtype.is_integer:
      keys = math_ops.cast(values, dtypes.int64)
    else:
      keys = string_ops.string_to_hash_bucket_fast(values, categorical.STRING_BUCKETS,
                                                   name="lookup")
    return sparse_tensor.SparseTensor(input_tensor.indices, keys,
                                      input_tensor.dense_shape)

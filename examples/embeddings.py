# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The embedding part of a click model: one table per feature and group."""

import contextlib

import tensorflow.compat.v1 as tf

SOK = "sok"      # embedding variables, one sok.lookup_sparse for all tables
TF = "tf"        # embedding variables, one tf.nn.embedding_lookup_sparse for each
DENSE = "dense"  # stock variables of fixed size, ids taken modulo the size
LOOKUPS = (SOK, TF, DENSE)

# The memory of embedding variables' rows: CPU memory, GPU memory, GPU memory if the
# process has a GPU.
STORAGES = ("dram", "hbm", "auto")


def _one_per_sample(ids):
  """Returns a SparseTensor [B, 1] of one id per sample."""
  size = tf.size(ids, out_type=tf.int64)
  samples = tf.range(size)
  return tf.SparseTensor(
      tf.stack([samples, tf.zeros_like(samples)], axis=1), ids,
      tf.stack([size, 1]))


def _embedding_variable(name, dim, initializer, storage, values):
  # The import adds get_embedding_variable to tf.
  import sparse_operation_kit  # pylint: disable=unused-import
  from tensorflow.core.framework.embedding import config_pb2
  if storage != "auto":
    storage = config_pb2.StorageType.Value(storage.upper())
  option = tf.EmbeddingVariableOption(
      storage_option=tf.StorageOption(storage_type=storage), **values)
  return tf.get_embedding_variable(
      name, embedding_dim=dim, initializer=initializer, ev_option=option)


def lookup(ids, groups, how, dense_rows=100000, storage="dram", ids_on=None, values=None):
  """Creates the tables and looks up the ids.

  Args:
    ids: list of int64 [B], one per feature.
    groups: {name: row length}, as returned by a model's `tables`.
    how: SOK, TF or DENSE.
    dense_rows: rows of each table when `how` is DENSE.
    storage: one of STORAGES, for the other values of `how`.
    values: None, or the options `value_dtype` and `value_rounding`, as a dict.
    ids_on: device of the ops that prepare the ids; None: the caller's.

  Returns:
    {name: list of float32 [B, row length], one per feature}.
  """
  names = sorted(groups)
  tables, sp_ids = [], []
  with tf.device(ids_on) if ids_on else contextlib.nullcontext():
    if how == DENSE:
      ids = [tf.math.floormod(x, dense_rows) for x in ids]
    features = [_one_per_sample(x) for x in ids]
  for group in names:
    dim = groups[group]
    # A row of one float is a weight of a linear model, and starts at zero.
    initializer = (tf.zeros_initializer() if dim == 1 else
                   tf.truncated_normal_initializer(stddev=0.05))
    for i, feature in enumerate(features):
      name = "%s_%02d" % (group, i)
      if how == DENSE:
        table = tf.get_variable(
            name, [dense_rows, dim], initializer=initializer)
      else:
        table = _embedding_variable(name, dim, initializer, storage, values or {})
      tables.append(table)
      sp_ids.append(feature)
  if how == SOK:
    import sparse_operation_kit as sok
    outputs = sok.lookup_sparse(tables, sp_ids, combiners=["sum"] * len(tables))
  else:
    outputs = [
        tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")
        for table, ids in zip(tables, sp_ids)
    ]
  for table, output in zip(tables, outputs):
    output.set_shape([None, table.shape.as_list()[-1]])
  return {
      group: outputs[i * len(ids):(i + 1) * len(ids)]
      for i, group in enumerate(names)
  }

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""tf.data pipeline over Criteo's text or Parquet, parsed a batch at a time."""

import collections

import tensorflow.compat.v1 as tf

import criteo
import criteo_parquet

# numeric: float32 [B, 13], log(1 + max(x, 0)), 0 where empty.
# ids: list of 26 int64 [B], a hash of each category's text; an empty field is a
#   category of its own.
# label: float32 [B].
Batch = collections.namedtuple("Batch", ["numeric", "ids", "label"])

# Texts are hashed to int64, without a vocabulary or a modulo by a table's size. Two of
# a million texts collide with probability 1e-7.
_HASH_BUCKETS = 2 ** 63 - 1


def features(numbers, categories):
  """Returns a model's inputs.

  Args:
    numbers: float32 [B, 13].
    categories: [B, 26]: strings, which are hashed, or int64 ids.

  Returns:
    (numeric float32 [B, 13], ids int64 [26, B]).
  """
  numeric = tf.math.log1p(tf.maximum(numbers, 0.0))
  ids = categories
  if categories.dtype == tf.string:
    ids = tf.strings.to_hash_bucket_fast(categories, _HASH_BUCKETS)
  # The ids of each feature are contiguous.
  return numeric, tf.transpose(ids)


def _parse(lines):
  """Parses a batch by a few ops, whatever the number of columns; skips empty lines."""
  lines = tf.boolean_mask(lines, tf.not_equal(lines, ""))
  fields = tf.strings.split(lines, sep="\t", result_type="RaggedTensor")
  complete = tf.debugging.assert_equal(
      fields.row_lengths(), tf.constant(criteo.NUM_FIELDS, tf.int64),
      message="a line of the data file does not have %d tab-separated fields" %
      criteo.NUM_FIELDS)
  with tf.control_dependencies([complete]):
    fields = tf.reshape(fields.flat_values, [-1, criteo.NUM_FIELDS])
  label = tf.strings.to_number(fields[:, 0])
  numbers = fields[:, 1:1 + criteo.NUM_NUMERIC]
  empty = tf.equal(numbers, "")
  numbers = tf.where(empty, tf.fill(tf.shape(numbers), "0"), numbers)
  numeric, ids = features(
      tf.strings.to_number(numbers), fields[:, 1 + criteo.NUM_NUMERIC:])
  return numeric, ids, label


def categories_type(path):
  """Returns the dtype of the categories in the data of a path: tf.string or tf.int64."""
  if criteo_parquet.is_parquet(path) and criteo_parquet.check(path).ids:
    return tf.int64
  return tf.string


def _parquet_rows(path):
  """Returns the dataset of (label, numbers [13], categories [26]), row by row."""
  chunks = tf.data.Dataset.from_generator(
      lambda: criteo_parquet.chunks(path),
      (tf.float32, tf.float32, categories_type(path)),
      ([None], [None, criteo.NUM_NUMERIC], [None, criteo.NUM_CATEGORICAL]))
  return chunks.flat_map(
      lambda *columns: tf.data.Dataset.from_tensor_slices(columns))


def _parquet_features(label, numbers, categories):
  numeric, ids = features(numbers, categories)
  return numeric, ids, label


def dataset(path, batch_size, take=None, skip=0, repeat=False):
  """Returns a dataset of batches of parsed samples.

  Args:
    path: a text file in Criteo's format, a Parquet file with its columns, or a folder of
      such Parquet files.
    batch_size: int. The last batch of a dataset that does not repeat may be
      smaller, and so may one with empty lines of a text file.
    take: number of samples, or lines of a text file, to use; None uses all.
    skip: number of them to skip first.
    repeat: whether to start over at the end.

  Returns:
    tf.data.Dataset of (numeric, ids int64 [26, B], label); see `unpack`. A line with a
    wrong number of fields ends the iteration with InvalidArgumentError.
  """
  if criteo_parquet.is_parquet(path):
    rows, parse = _parquet_rows(path), _parquet_features
  else:
    rows, parse = tf.data.TextLineDataset(path, buffer_size=1 << 20), _parse
  if skip:
    rows = rows.skip(skip)
  if take is not None:
    rows = rows.take(take)
  if repeat:
    rows = rows.repeat()
  batches = rows.batch(batch_size).map(parse, num_parallel_calls=2)
  # A batch of empty lines only would have no mean loss.
  return batches.filter(lambda numeric, ids, label: tf.size(label) > 0).prefetch(2)


def unpack(element):
  """Returns the Batch of one element of `dataset`."""
  numeric, ids, label = element
  numeric.set_shape([None, criteo.NUM_NUMERIC])
  return Batch(numeric, tf.unstack(ids, criteo.NUM_CATEGORICAL), label)

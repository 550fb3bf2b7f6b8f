# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""tf.data pipeline over lines in Criteo's format, parsed a batch at a time."""

import collections

import tensorflow as tf

import criteo

# numeric: float32 [B, 13], log(1 + max(x, 0)), 0 where empty.
# ids: list of 26 int64 [B], a hash of each category's text; an empty field is a
#   category of its own.
# label: float32 [B].
Batch = collections.namedtuple("Batch", ["numeric", "ids", "label"])

# Texts are hashed to int64 as they are: no vocabulary, no modulo by a table's
# size. Two of a million texts collide with probability 1e-7.
_HASH_BUCKETS = 2 ** 63 - 1


def _parse(lines):
  """Vectorised over a batch: a handful of ops whatever the number of columns."""
  fields = tf.strings.split(lines, sep="\t", result_type="RaggedTensor")
  complete = tf.compat.v1.debugging.assert_equal(
      fields.row_lengths(), tf.constant(criteo.NUM_FIELDS, tf.int64),
      message="a line of the data file does not have %d tab-separated fields" %
      criteo.NUM_FIELDS)
  with tf.control_dependencies([complete]):
    fields = tf.reshape(fields.flat_values, [-1, criteo.NUM_FIELDS])
  label = tf.strings.to_number(fields[:, 0])
  numeric = fields[:, 1:1 + criteo.NUM_NUMERIC]
  empty = tf.equal(numeric, "")
  numeric = tf.where(empty, tf.fill(tf.shape(numeric), "0"), numeric)
  numeric = tf.math.log1p(tf.maximum(tf.strings.to_number(numeric), 0.0))
  ids = tf.strings.to_hash_bucket_fast(
      fields[:, 1 + criteo.NUM_NUMERIC:], _HASH_BUCKETS)
  # Feature by feature, so that each feature's ids lie together.
  return numeric, tf.transpose(ids), label


def dataset(path, batch_size, take=None, skip=0, repeat=False):
  """Batches of parsed lines.

  Args:
    path: a file, or a list of files.
    batch_size: int. The last batch of a dataset that does not repeat may be
      smaller.
    take: number of lines to use, None: all.
    skip: number of lines to leave out first.
    repeat: whether to start over at the end.

  Returns:
    tf.data.Dataset of (numeric, ids int64 [26, B], label); see `unpack`. A line
    with another number of fields ends the iteration with InvalidArgumentError.
  """
  lines = tf.data.TextLineDataset(path, buffer_size=1 << 20)
  if skip:
    lines = lines.skip(skip)
  if take is not None:
    lines = lines.take(take)
  if repeat:
    lines = lines.repeat()
  batches = lines.batch(batch_size)
  return batches.map(_parse, num_parallel_calls=2).prefetch(2)


def unpack(element):
  """Batch of one element of `dataset`."""
  numeric, ids, label = element
  numeric.set_shape([None, criteo.NUM_NUMERIC])
  return Batch(numeric, tf.unstack(ids, criteo.NUM_CATEGORICAL), label)

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lookups of combiner "concat": the rows of a sample's keys side by side.

The top of such a lookup is `[batch, 1, hotness * vec_size]`, where hotness is nnz_per_slot
of the sparse input. The row of a sample's k-th key is at floats k * vec_size to
(k + 1) * vec_size - 1. A sample with fewer keys has zeros at the end.
"""

import numpy as np
import tensorflow.compat.v1 as tf

from hugectr.data import errors


def is_concat(embedding):
  """Returns whether a lookup (the config's Embedding) has the combiner "concat"."""
  return embedding.combiner == "concat"


def positions(keys, embedding):
  """Returns the keys with a list of one key, or of none, for each position of a sample.

  The sums of these lists' rows are the rows themselves, with zeros where a key is absent.

  Args:
    keys: RaggedTensor of int64, `[batch, keys]`.
    embedding: the config's Embedding, of combiner "concat".

  Returns:
    RaggedTensor of int64, `[batch * hotness, keys]`. To run it is an InvalidArgumentError
    if a sample has more than hotness keys.
  """
  hotness = embedding.bottom.max_nnz
  starts, counts = keys.row_splits[:-1], keys.row_lengths()
  fits = tf.debugging.assert_less_equal(
      counts, tf.constant(hotness, tf.int64),
      message="embedding %s: combiner concat: expected at most %d keys of a sample in %s" %
      (embedding.name, hotness, embedding.bottom.top))
  with tf.control_dependencies([fits]):
    taken = tf.minimum(tf.range(hotness, dtype=tf.int64), counts[:, tf.newaxis])
  splits = tf.reshape(starts[:, tf.newaxis] + taken, [-1])
  return tf.RaggedTensor.from_row_splits(
      keys.flat_values, tf.concat([splits, keys.row_splits[-1:]], 0), validate=False)


def check(embeddings, inputs):
  """Raises DataError if a sample of a batch has too many keys for a "concat" lookup.

  Args:
    embeddings: list of the config's Embedding.
    inputs: list of data Keys, one per embedding.
  """
  for embedding, (_, splits) in zip(embeddings, inputs):
    if not is_concat(embedding):
      continue
    counts, hotness = np.diff(splits.ravel()), embedding.bottom.max_nnz
    if len(counts) and counts.max() > hotness:
      raise errors.DataError(
          "embedding '%s' with the top '%s': combiner concat: expected at most %d keys of a "
          "sample in '%s', its nnz_per_slot, got %d in sample %d of the batch" %
          (embedding.name, embedding.top, hotness, embedding.bottom.top, counts.max(),
           counts.argmax()))

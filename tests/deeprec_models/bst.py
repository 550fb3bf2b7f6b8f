# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""BST as a script for DeepRec: a transformer over the history and the candidate item.

The history comes through contrib's sequence columns.
"""

import tensorflow as tf

import parts
import zoo

INPUTS = parts.WITH_HISTORIES
_DIMENSION = 8


def _sequence(args, features, partitioner):
  """Returns the rows [B, T, dim] of the history, and its lengths [B]."""
  if args.ev:
    column = tf.feature_column.sequence_categorical_column_with_embedding(
        "H1", dtype=tf.string)
  else:
    column = tf.contrib.feature_column.sequence_categorical_column_with_hash_bucket(
        "H1", zoo.BUCKETS, dtype=tf.string)
  column = tf.feature_column.embedding_column(
      column, _DIMENSION, initializer=tf.random_normal_initializer(
          stddev=.1, seed=args.seed))
  with tf.variable_scope("history", partitioner=partitioner, reuse=tf.AUTO_REUSE):
    return tf.contrib.feature_column.sequence_input_layer(
        {"H1": parts.split(features["H1"])}, [column])


def _transformer(args, net, mask, heads):
  """Returns a block of self-attention over `net` [B, T, dim]."""
  query, key, value = [
      tf.concat(tf.split(parts.layer(args, net, _DIMENSION, name), heads, 2), 0)
      for name in ("query", "key", "value")]
  scores = tf.matmul(query, key, transpose_b=True) / (_DIMENSION // heads)**.5
  allowed = tf.tile(tf.expand_dims(mask, 1), [heads, tf.shape(net)[1], 1])
  scores = tf.where(allowed > 0, scores, -1e9 * tf.ones_like(scores))
  found = tf.concat(tf.split(tf.matmul(tf.nn.softmax(scores), value), heads, 0), 2)
  net = tf.contrib.layers.layer_norm(net + found, begin_norm_axis=2)
  forward = parts.layer(args, parts.layer(args, net, 16, "wide", tf.nn.leaky_relu),
                        _DIMENSION, "narrow")
  return tf.contrib.layers.layer_norm(net + forward, begin_norm_axis=2)


def model(args, features, input_partitioner, dense_partitioner):
  """Returns the logits [B]."""
  dense, profile = parts.inputs_of(args, features, input_partitioner)
  history, lengths = _sequence(args, features, input_partitioner)
  # The candidate item is the first of the sequence.
  net = tf.concat([tf.expand_dims(profile[0], 1), history], 1)
  mask = tf.sequence_mask(lengths + 1, tf.shape(net)[1], tf.float32)
  with tf.variable_scope("transformer"):
    net = _transformer(args, net, mask, 2) * tf.expand_dims(mask, 2)
  net = tf.concat([dense, tf.reduce_sum(net, 1)] + profile, 1)
  net = zoo.tower(args, net, "dnn", [32, 16], dense_partitioner)
  return parts.logit(args, net)


if __name__ == "__main__":
  zoo.main(model, inputs=INPUTS)

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Columns and layers that the models of this folder share."""

import tensorflow as tf

import zoo

# The string columns that models read: building a graph takes most of a test's time.
SPARSE = zoo.SPARSE[:3]
# A user's items and shops, from the first to the last: keys joined by "|".
HISTORIES = ["H1", "H2"]
# The labels of a model with two tasks: a click, and a purchase after it.
TASKS = [zoo.LABEL, "bought"]

PLAIN = zoo.Inputs([zoo.LABEL], zoo.DENSE, SPARSE)
WITH_HISTORIES = zoo.Inputs([zoo.LABEL], zoo.DENSE, SPARSE + HISTORIES)
TWO_TASKS = zoo.Inputs(TASKS, zoo.DENSE, SPARSE)


def inputs_of(args, features, partitioner):
  """Returns the numeric input [B, 4] and a list of the embeddings [B, dim]."""
  numeric, embedded = zoo.columns(args, SPARSE)
  with tf.variable_scope("input", partitioner=partitioner, reuse=tf.AUTO_REUSE):
    dense = tf.feature_column.input_layer(features, numeric)
    tensors = {}
    tf.feature_column.input_layer(features, embedded, cols_to_output_tensors=tensors)
  return dense, [tensors[c] for c in embedded]


def weights(args, name, shape, seed=0):
  """Returns a variable with random initial values."""
  return tf.get_variable(name, shape, initializer=tf.glorot_uniform_initializer(
      args.seed + seed))


def layer(args, net, units, name, activation=None):
  """Returns a dense layer."""
  return tf.layers.dense(net, units, activation, name=name,
                         kernel_initializer=tf.glorot_uniform_initializer(args.seed))


def logit(args, net, name="logits"):
  """Returns a dense layer with one unit, as [B]."""
  return tf.squeeze(layer(args, net, 1, name), -1)


def table(args, name, partitioner=None, dimension=8):
  """Returns a table of rows for keys: an embedding variable with --ev."""
  initializer = tf.random_normal_initializer(stddev=.1, seed=args.seed)
  with tf.variable_scope("tables", partitioner=partitioner, reuse=tf.AUTO_REUSE):
    if args.ev:
      return tf.get_embedding_variable(name, dimension, initializer=initializer)
    return tf.get_variable(name, [zoo.BUCKETS, dimension], initializer=initializer)


def split(text):
  """Returns a SparseTensor [B, T] of the strings that a history [B] has."""
  return tf.string_split(text, "|")


def keys(words):
  """Returns the int64 keys of strings: a tensor or a SparseTensor."""
  if isinstance(words, tf.SparseTensor):
    return tf.SparseTensor(words.indices, keys(words.values), words.dense_shape)
  return tf.string_to_hash_bucket_fast(words, zoo.BUCKETS)


def sequence(rows, words):
  """Returns the rows [B, T, dim] of a history, and its mask [B, T]."""
  ids = tf.sparse_tensor_to_dense(keys(words))
  mask = tf.sparse_tensor_to_dense(
      tf.SparseTensor(words.indices, tf.ones_like(words.values, tf.float32),
                      words.dense_shape))
  found = tf.nn.embedding_lookup(rows, ids, partition_strategy="div")
  return found * tf.expand_dims(mask, 2), mask

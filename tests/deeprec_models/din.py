# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DIN as a script for DeepRec: the history of items, weighted by the candidate item."""

import tensorflow as tf

import parts
import zoo

INPUTS = parts.WITH_HISTORIES


def _pooled(args, table, words):
  """Returns the mean [B, dim] of the rows of a history."""
  if args.tf:
    return tf.nn.safe_embedding_lookup_sparse(table, parts.keys(words),
                                              partition_strategy="div")
  from tensorflow.python.ops.embedding_ops import fused_safe_embedding_lookup_sparse  # pylint: disable=g-import-not-at-top
  return fused_safe_embedding_lookup_sparse(table, parts.keys(words))


def _attention(args, query, history, mask):
  """Returns the sum [B, dim] of `history` [B, T, dim], weighted by `query` [B, dim]."""
  queries = tf.ones_like(history) * tf.expand_dims(query, 1)
  net = tf.concat([queries, history, queries - history, queries * history], 2)
  net = parts.layer(args, net, 8, "attention_1", tf.sigmoid)
  scores = parts.logit(args, net, "attention_2")
  weights = tf.nn.softmax(tf.where(mask > 0, scores, -1e9 * tf.ones_like(scores)))
  return tf.reduce_sum(history * tf.expand_dims(weights, 2), 1)


def model(args, features, input_partitioner, dense_partitioner):
  """Returns the logits [B]."""
  dense, profile = parts.inputs_of(args, features, input_partitioner)
  items = parts.table(args, "items", input_partitioner)
  shops = parts.table(args, "shops", input_partitioner)
  history, mask = parts.sequence(items, parts.split(features["H1"]))
  query = tf.nn.embedding_lookup(items, parts.keys(features["C1"]),
                                 partition_strategy="div")
  interest = _attention(args, query, history, mask)
  visited = _pooled(args, shops, parts.split(features["H2"]))
  net = tf.concat([dense, query, interest, query * interest, visited] + profile, 1)
  net = zoo.tower(args, net, "dnn", [32, 16], dense_partitioner)
  return parts.logit(args, net)


if __name__ == "__main__":
  zoo.main(model, inputs=INPUTS)

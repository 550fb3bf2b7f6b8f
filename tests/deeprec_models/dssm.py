# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DSSM as a script for DeepRec: the cosine of a user's and an item's vector."""

import tensorflow as tf

import parts
import zoo

INPUTS = parts.WITH_HISTORIES


def model(args, features, input_partitioner, dense_partitioner):
  """Returns the logits [B]."""
  dense, profile = parts.inputs_of(args, features, input_partitioner)
  shops = parts.table(args, "shops", input_partitioner)
  visited = tf.nn.safe_embedding_lookup_sparse(
      shops, parts.keys(parts.split(features["H2"])), combiner="sum",
      partition_strategy="div")
  user = zoo.tower(args, tf.concat([dense, visited] + profile[:2], 1), "user", [32],
                   dense_partitioner)
  item = zoo.tower(args, tf.concat(profile[2:], 1), "item", [32], dense_partitioner)
  user = tf.nn.l2_normalize(parts.layer(args, user, 8, "user_vector"), 1)
  item = tf.nn.l2_normalize(parts.layer(args, item, 8, "item_vector"), 1)
  scale = tf.get_variable("scale", [], initializer=tf.constant_initializer(5.))
  bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
  return tf.reduce_sum(user * item, 1) * scale + bias


if __name__ == "__main__":
  zoo.main(model, inputs=INPUTS)

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A DLRM, as a script for DeepRec: see zoo.py."""

import tensorflow as tf

import zoo


def model(args, features, input_partitioner, dense_partitioner):
  """Returns the logits [B]."""
  numeric, embedded = zoo.columns(args)
  with tf.variable_scope("input", partitioner=input_partitioner, reuse=tf.AUTO_REUSE):
    dense = tf.feature_column.input_layer(features, numeric)
    tensors = {}
    tf.feature_column.input_layer(features, embedded, cols_to_output_tensors=tensors)
  bottom = zoo.tower(args, dense, "bottom", [32, 8], dense_partitioner)
  vectors = tf.stack([bottom] + [tensors[c] for c in embedded], 1)
  products = tf.matmul(vectors, vectors, transpose_b=True)
  count = len(embedded) + 1
  pairs = [products[:, i, j] for i in range(count) for j in range(i)]
  net = zoo.tower(args, tf.concat([bottom, tf.stack(pairs, 1)], 1), "top", [32],
                  dense_partitioner)
  return tf.squeeze(tf.layers.dense(
      net, 1, name="logits",
      kernel_initializer=tf.glorot_uniform_initializer(args.seed)), 1)


if __name__ == "__main__":
  zoo.main(model)

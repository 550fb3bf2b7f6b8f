# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DeepFM as a script for DeepRec: a factorization machine beside dense layers."""

import tensorflow as tf

import parts
import zoo

INPUTS = parts.PLAIN


def model(args, features, input_partitioner, dense_partitioner):
  """Returns the logits [B]."""
  numeric, embedded = zoo.columns(args, parts.SPARSE)
  with tf.variable_scope("input", partitioner=input_partitioner, reuse=tf.AUTO_REUSE):
    tensors = {}
    net = tf.feature_column.input_layer(features, numeric + embedded,
                                        cols_to_output_tensors=tensors)
  with tf.variable_scope("linear", partitioner=input_partitioner, reuse=tf.AUTO_REUSE):
    fusion = {} if args.tf else {"do_fusion": args.emb_fusion}
    linear = tf.feature_column.linear_model(
        features, numeric + [c.categorical_column for c in embedded], **fusion)
  vectors = tf.stack([tensors[c] for c in embedded], 1)
  square_of_sum = tf.square(tf.reduce_sum(vectors, 1))
  sum_of_squares = tf.reduce_sum(tf.square(vectors), 1)
  pairs = .5 * tf.reduce_sum(square_of_sum - sum_of_squares, 1)
  net = zoo.tower(args, net, "dnn", [32, 16], dense_partitioner)
  deep = tf.layers.dense(net, 1, name="logits",
                         kernel_initializer=tf.glorot_uniform_initializer(args.seed))
  return tf.squeeze(deep + linear, 1) + pairs


if __name__ == "__main__":
  zoo.main(model, inputs=INPUTS)

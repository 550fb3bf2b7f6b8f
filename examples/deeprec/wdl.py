# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A wide and deep model, as a script for DeepRec: see zoo.py."""

import tensorflow as tf

import zoo


def model(args, features, input_partitioner, dense_partitioner):
  """Returns the logits [B]."""
  numeric, embedded = zoo.columns(args)
  with tf.variable_scope("input", partitioner=input_partitioner, reuse=tf.AUTO_REUSE):
    net = tf.feature_column.input_layer(features, numeric + embedded)
  deep = zoo.tower(args, net, "dnn", [64, 32], dense_partitioner)
  deep = tf.layers.dense(deep, 1, name="deep_logits",
                         kernel_initializer=tf.glorot_uniform_initializer(args.seed))
  with tf.variable_scope("linear", partitioner=input_partitioner, reuse=tf.AUTO_REUSE):
    wide = tf.feature_column.linear_model(
        features, numeric + [c.categorical_column for c in embedded])
  return tf.squeeze(deep + wide, 1)


if __name__ == "__main__":
  zoo.main(model)

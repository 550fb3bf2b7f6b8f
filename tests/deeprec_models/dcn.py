# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DCN as a script for DeepRec: cross layers with a vector of weights each."""

import tensorflow as tf

import parts
import zoo

INPUTS = parts.PLAIN


def _cross(args, first, layers):
  """Returns the output [B, n] of cross layers over `first` [B, n]."""
  width = first.shape[1].value
  net = first
  for i in range(layers):
    with tf.variable_scope("layer_%d" % i):
      weight = parts.weights(args, "weight", [width, 1], i)
      bias = tf.get_variable("bias", [width], initializer=tf.zeros_initializer())
      net = first * tf.matmul(net, weight) + bias + net
  return net


def model(args, features, input_partitioner, dense_partitioner):
  """Returns the logits [B]."""
  numeric, embedded = zoo.columns(args, parts.SPARSE)
  with tf.variable_scope("input", partitioner=input_partitioner, reuse=tf.AUTO_REUSE):
    net = tf.feature_column.input_layer(features, numeric + embedded)
  with tf.variable_scope("cross"):
    crossed = _cross(args, net, 3)
  deep = zoo.tower(args, net, "dnn", [32, 16], dense_partitioner)
  return parts.logit(args, tf.concat([crossed, deep], 1))


if __name__ == "__main__":
  zoo.main(model, inputs=INPUTS)

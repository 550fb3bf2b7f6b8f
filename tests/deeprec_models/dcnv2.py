# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DCN version 2 as a script for DeepRec: cross layers of low rank, then dense layers."""

import tensorflow as tf

import parts
import zoo

INPUTS = parts.PLAIN


def _cross(args, first, layers, rank):
  """Returns the output [B, n] of cross layers over `first` [B, n]."""
  width = first.shape[1].value
  net = first
  for i in range(layers):
    with tf.variable_scope("layer_%d" % i):
      down = parts.weights(args, "down", [width, rank], 2 * i)
      up = parts.weights(args, "up", [rank, width], 2 * i + 1)
      bias = tf.get_variable("bias", [width], initializer=tf.zeros_initializer())
      net = first * tf.nn.bias_add(tf.matmul(tf.matmul(net, down), up), bias) + net
  return net


def model(args, features, input_partitioner, dense_partitioner):
  """Returns the logits [B]."""
  numeric, embedded = zoo.columns(args, parts.SPARSE)
  with tf.variable_scope("input", partitioner=input_partitioner, reuse=tf.AUTO_REUSE):
    net = tf.feature_column.input_layer(features, numeric + embedded)
  with tf.variable_scope("cross"):
    net = _cross(args, net, 2, 8)
  net = zoo.tower(args, net, "dnn", [32, 16], dense_partitioner)
  return parts.logit(args, net)


if __name__ == "__main__":
  zoo.main(model, inputs=INPUTS)

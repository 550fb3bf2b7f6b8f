# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Dense layers that the models share."""

import tensorflow.compat.v1 as tf


def dense(inputs, units, activation=None, name=None):
  """Fully connected layer: float32 [B, n] to [B, units]."""
  with tf.variable_scope(name, default_name="dense"):
    kernel = tf.get_variable(
        "kernel", [inputs.shape.as_list()[1], units],
        initializer=tf.glorot_uniform_initializer())
    bias = tf.get_variable(
        "bias", [units], initializer=tf.zeros_initializer())
  outputs = tf.matmul(inputs, kernel) + bias
  return activation(outputs) if activation else outputs


def mlp(inputs, sizes, name):
  """Fully connected ReLU layers of the given sizes: [B, n] to [B, sizes[-1]]."""
  with tf.variable_scope(name):
    for i, units in enumerate(sizes):
      inputs = dense(inputs, units, tf.nn.relu, name="layer_%d" % i)
  return inputs


def logit(inputs, name="logit"):
  """One unit without activation: [B, n] to [B]."""
  return tf.squeeze(dense(inputs, 1, name=name), axis=1)

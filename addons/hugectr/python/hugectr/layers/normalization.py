# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""BatchNorm and LayerNorm."""

import tensorflow as tf

from hugectr.layers import initializers


def _gamma_and_beta(context, layer, clause, width):
  gamma_init = initializers.ones
  if "gamma_init" in clause:
    gamma_init = initializers.named(clause["gamma_init"], width, 1)
  return (context.parameters.get(layer.name, "gamma", [width], gamma_init),
          context.parameters.get(
              layer.name, "beta", [width],
              initializers.named(clause.get("beta_init", "Zero"), width, 1)))


def batch_norm(context, layer, bottom):
  """Returns gamma (x - mean) / sqrt(variance + eps) + beta, per column.

  In training mean and variance are the batch's, and the running values become
  running (1 - factor) + batch factor; of the variance the batch's is taken with one
  degree of freedom less, sum (x - mean)^2 / (rows - 1). In evaluation they are the
  running values.
  """
  clause = layer.params["bn_param"]
  width = layer.in_shapes[0].dims[0]
  gamma, beta = _gamma_and_beta(context, layer, clause, width)
  running = context.parameters.running_values(layer.name, width)
  if not context.is_training:
    return tf.nn.batch_normalization(bottom, running.mean, running.variance, beta, gamma,
                                     clause["eps"])
  mean, variance = tf.nn.moments(bottom, axes=[0])
  rows = tf.cast(tf.shape(bottom)[0], tf.float32)
  unbiased = variance * rows / tf.maximum(rows - 1., 1.)
  factor = clause["factor"]
  for value, now in ((running.mean, mean), (running.variance, unbiased)):
    # Over ranks a short batch may leave one without samples.
    mixed = tf.cond(rows > 0, lambda v=value, n=now: v * (1. - factor) + n * factor,
                    value.read_value)
    context.updates.append(value.assign(mixed))
  return tf.nn.batch_normalization(bottom, mean, variance, beta, gamma, clause["eps"])


def layer_norm(context, layer, bottom):
  """Returns gamma (x - mean) / sqrt(variance + eps) + beta, over the last axis."""
  clause = layer.params["ln_param"]
  gamma, beta = _gamma_and_beta(context, layer, clause, layer.in_shapes[0].dims[-1])
  mean, variance = tf.nn.moments(bottom, axes=[-1], keepdims=True)
  return tf.nn.batch_normalization(bottom, mean, variance, beta, gamma, clause["eps"])

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""BatchNorm, LayerNorm, and PReLU_Dice, which normalizes to decide between two slopes."""

import tensorflow.compat.v1 as tf

from hugectr.layers import initializers


def _gamma_and_beta(context, layer, clause, width):
  gamma_init = initializers.ones
  if "gamma_init" in clause:
    gamma_init = initializers.named(clause["gamma_init"], width, 1)
  return (context.parameter(layer.name, "gamma", [width], gamma_init),
          context.parameter(
              layer.name, "beta", [width],
              initializers.named(clause.get("beta_init", "Zero"), width, 1)))


def batch_norm(context, layer, bottom):
  """Returns gamma (x - mean) / sqrt(variance + eps) + beta, per column.

  In training, mean and variance are those of the batch, and running values become
  running (1 - factor) + batch factor. The variance for the running value is the
  unbiased one, sum (x - mean)^2 / (rows - 1). In evaluation, mean and variance are the
  running values.
  """
  clause = layer.params["bn_param"]
  width = layer.in_shapes[0].dims[0]
  gamma, beta = _gamma_and_beta(context, layer, clause, width)
  running = context.running_values(layer.name, width)
  if not context.is_training:
    return tf.nn.batch_normalization(bottom, running.mean, running.variance, beta, gamma,
                                     clause["eps"])
  mean, variance = tf.nn.moments(bottom, axes=[0])
  rows = tf.cast(tf.shape(bottom)[0], tf.float32)
  unbiased = variance * rows / tf.maximum(rows - 1., 1.)
  factor = clause["factor"]
  for value, now in ((running.mean, mean), (running.variance, unbiased)):
    # Over ranks, a short batch may leave a rank without samples.
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


def prelu_dice(context, layer, bottom):
  """Returns p x + (1 - p) alpha x, p = sigmoid((x - mean) / sqrt(variance + eps)).

  This is the activation Dice of Zhou et al., Deep Interest Network (2018), formula 3.
  Mean and variance (over rows, not over rows - 1) are those of the batch, per column.
  Model files have no running values for them, so evaluation uses its batch too.
  """
  del context
  clause = layer.params["prelu_dice_param"]
  mean, variance = tf.nn.moments(bottom, axes=[0])
  p = tf.sigmoid((bottom - mean) * tf.math.rsqrt(variance + clause["eps"]))
  return (p + (1. - p) * clause["alpha"]) * bottom

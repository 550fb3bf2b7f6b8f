# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""BatchNorm, LayerNorm, and PReLU_Dice, which normalizes to decide between two slopes."""

import tensorflow.compat.v1 as tf

from hugectr.layers import initializers
from hugectr.layers import layer as layer_lib
from hugectr.layers.shapes import flat_only


def _gamma_and_beta(context, layer, clause, width):
  gamma_init = initializers.ones
  if "gamma_init" in clause:
    gamma_init = initializers.named(clause["gamma_init"], width, 1)
  return (context.parameter(layer.name, "gamma", [width], gamma_init),
          context.parameter(
              layer.name, "beta", [width],
              initializers.named(clause.get("beta_init", "Zero"), width, 1)))


class BatchNorm(layer_lib.Layer):
  """gamma (x - mean) / sqrt(variance + eps) + beta over the batch; in evaluation with the
  running values.
  """
  keys = {
      "bn_param": layer_lib.section({
              "factor": layer_lib.number(
                  "Weight of a batch in the running values.",
                  minimum=0, maximum=1),
              "eps": layer_lib.number(
                  "Added to the variance.", exclusiveMinimum=0),
              "gamma_init": layer_lib.initializer("Initial gamma; unless given ones."),
              "beta_init": layer_lib.initializer("Initial beta.", default="Zero")
          }, required=["factor", "eps"])
  }
  required = ("bn_param",)
  arguments = {
      "bn_param.eps": ("eps", 1e-5),
      "bn_param.factor": ("factor", 1.0),
      "bn_param.gamma_init": ("gamma_init_type", layer_lib.OMITTED),
      "bn_param.beta_init": ("beta_init_type", layer_lib.OMITTED)
  }
  shape = staticmethod(flat_only)

  @staticmethod
  def build(context, layer, bottom):
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


class LayerNorm(layer_lib.Layer):
  """gamma (x - mean) / sqrt(variance + eps) + beta over the last axis."""
  keys = {
      "ln_param": layer_lib.section({
              "eps": layer_lib.number(
                  "Added to the variance.", exclusiveMinimum=0),
              "gamma_init": layer_lib.initializer("Initial gamma; unless given ones."),
              "beta_init": layer_lib.initializer("Initial beta.", default="Zero")
          }, required=["eps"])
  }
  required = ("ln_param",)
  arguments = {
      "ln_param.eps": ("eps", 1e-5),
      "ln_param.gamma_init": ("gamma_init_type", layer_lib.OMITTED),
      "ln_param.beta_init": ("beta_init_type", layer_lib.OMITTED)
  }

  @staticmethod
  def build(context, layer, bottom):
    """Returns gamma (x - mean) / sqrt(variance + eps) + beta, over the last axis."""
    clause = layer.params["ln_param"]
    gamma, beta = _gamma_and_beta(context, layer, clause, layer.in_shapes[0].dims[-1])
    mean, variance = tf.nn.moments(bottom, axes=[-1], keepdims=True)
    return tf.nn.batch_normalization(bottom, mean, variance, beta, gamma, clause["eps"])


class PReLU_Dice(layer_lib.Layer):  # pylint: disable=invalid-name
  """p x + (1 - p) alpha x, p the sigmoid of (x - mean) / sqrt(variance + eps); mean and
  variance are the batch's, per column, in evaluation too.
  """
  keys = {
      "prelu_dice_param": layer_lib.section({
              "alpha": layer_lib.number("Slope where p is 0."),
              "eps": layer_lib.number(
                  "Added to the variance.", exclusiveMinimum=0)
          }, required=["alpha", "eps"])
  }
  required = ("prelu_dice_param",)
  arguments = {
      "prelu_dice_param.alpha": ("elu_alpha", 1.0),
      "prelu_dice_param.eps": ("eps", 1e-5)
  }
  shape = staticmethod(flat_only)

  @staticmethod
  def build(context, layer, bottom):
    """Returns p x + (1 - p) alpha x, p = sigmoid((x - mean) / sqrt(variance + eps)).

    This is the activation Dice of Zhou et al., Deep Interest Network (2018), formula 3.
    Mean and variance (over rows, not over rows - 1) are those of the batch, per column.
    Model files have no running values for them, so evaluation uses its batch too.
    """
    clause = layer.params["prelu_dice_param"]
    mean, variance = tf.nn.moments(bottom, axes=[0])
    p = tf.sigmoid((bottom - mean) * tf.math.rsqrt(variance + clause["eps"]))
    return (p + (1. - p) * clause["alpha"]) * bottom

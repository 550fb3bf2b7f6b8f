# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Initial values of dense parameters: functions (shape, seed) -> float32 tensor."""

import math

import tensorflow.compat.v1 as tf


def ones(shape, seed):
  """Returns ones."""
  del seed
  return tf.ones(shape)


def zeros(shape, seed):
  """Returns zeros."""
  del seed
  return tf.zeros(shape)


def _uniform(limit):
  return lambda shape, seed: tf.random.uniform(shape, -limit, limit, seed=seed)


def _truncated_normal(deviation):
  return lambda shape, seed: tf.random.truncated_normal(shape, stddev=deviation, seed=seed)


def bias(width):
  """Returns the default initializer of a bias.

  A normal distribution with deviation sqrt(1 / width), truncated at twice that.
  """
  return _truncated_normal(math.sqrt(1.0 / width))


def of_fan_in(width):
  """Returns an initializer that is uniform in +-sqrt(1 / width)."""
  return _uniform(math.sqrt(1.0 / width))


def named(name, fan_in, fan_out):
  """Returns an initializer by its name in a configuration.

  Args:
    name: "Uniform": in +-1 / (fan_in + fan_out). "XavierNorm", "XavierUniform": variance
      2 / (fan_in + fan_out). "Zero".
    fan_in: int, number of inputs of an output.
    fan_out: int, number of outputs of an input.
  """
  if name == "Zero":
    return zeros
  if name == "Uniform":
    return _uniform(1.0 / (fan_in + fan_out))
  variance = 2.0 / (fan_in + fan_out)
  if name == "XavierUniform":
    return _uniform(math.sqrt(3.0 * variance))
  # Truncation at two deviations reduces the deviation by this factor.
  return _truncated_normal(math.sqrt(variance) / .87962566103423978)

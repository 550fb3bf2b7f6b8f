# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Initial values of dense parameters."""

import math

import tensorflow as tf


def ones():
  """Returns the initializer of ones."""
  return tf.compat.v1.ones_initializer()


def bias(width):
  """Returns the initializer of a bias unless its layer names one.

  A normal distribution of deviation sqrt(1 / width), cut at twice that.
  """
  return tf.compat.v1.truncated_normal_initializer(stddev=math.sqrt(1.0 / width))


def named(name, fan_in, fan_out):
  """Returns an initializer by its name in a configuration.

  Args:
    name: "Uniform": in +-1 / (fan_in + fan_out). "XavierNorm", "XavierUniform": variance
      2 / (fan_in + fan_out). "Zero".
    fan_in: int, numbers that go into an output.
    fan_out: int, outputs that a number goes into.

  Returns:
    A function (shape, dtype) -> tensor.
  """
  if name == "Zero":
    return tf.compat.v1.zeros_initializer()
  if name == "Uniform":
    limit = 1.0 / (fan_in + fan_out)
    return tf.compat.v1.random_uniform_initializer(-limit, limit)
  variance = 2.0 / (fan_in + fan_out)
  if name == "XavierUniform":
    limit = math.sqrt(3.0 * variance)
    return tf.compat.v1.random_uniform_initializer(-limit, limit)
  # What is left of a normal distribution cut at two deviations has .8796 of its own.
  return tf.compat.v1.truncated_normal_initializer(
      stddev=math.sqrt(variance) / .87962566103423978)

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""FTRL with upstream's beta and lambda2, by TensorFlow's optimizer."""

import tensorflow.compat.v1 as tf


def optimizer(learning_rate, beta, lambda1, lambda2, name):
  """Returns a `tf.train.FtrlOptimizer` with the divisor sqrt(n) / lr + beta / lr + lambda2.

    n' = n + g^2, z = z + g - (sqrt(n') - sqrt(n)) / lr w,
    w = (clamp(z, -lambda1, lambda1) - z) / (sqrt(n') / lr + beta / lr + lambda2), n = n'

  Args:
    learning_rate: float32 variable, above 0.
    beta: float of at least 0.
    lambda1: float of at least 0.
    lambda2: float of at least 0.
    name: name of the ops.
  """
  found = tf.train.FtrlOptimizer(
      learning_rate, initial_accumulator_value=0.0, l1_regularization_strength=lambda1,
      name=name)
  # The constructor takes numbers alone, but this depends on the rate. Its divisor has
  # twice this strength.
  found._l2_regularization_strength = (beta / learning_rate + lambda2) / 2.  # pylint: disable=protected-access
  return found

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DeepFM: a factorization machine and an MLP over the same embeddings."""

import tensorflow.compat.v1 as tf

from models import layers


def tables(dim):
  """Returns {group: row length}; a group has a table per categorical feature."""
  return {"linear": 1, "factors": dim}


def logits(numeric, embeddings):
  """Builds the model.

  Args:
    numeric: float32 [B, N].
    embeddings: {group: list of float32 [B, row length]}, groups as in `tables`.

  Returns:
    float32 [B].
  """
  linear = tf.squeeze(tf.add_n(embeddings["linear"]), axis=1)
  linear += layers.logit(numeric, name="linear_numeric")
  # The sum of all pairs' dot products is half of the square of the sum minus the
  # sum of the squares.
  factors = tf.stack(embeddings["factors"], axis=1)
  square_of_sum = tf.square(tf.reduce_sum(factors, axis=1))
  sum_of_squares = tf.reduce_sum(tf.square(factors), axis=1)
  pairs = 0.5 * tf.reduce_sum(square_of_sum - sum_of_squares, axis=1)
  deep = tf.concat([numeric] + embeddings["factors"], axis=1)
  deep = layers.mlp(deep, [256, 128, 64], name="deep")
  return linear + pairs + layers.logit(deep)

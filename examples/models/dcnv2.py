# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DCNv2: cross layers with low-rank matrices, then an MLP."""

import tensorflow as tf

from models import layers

_CROSS_LAYERS = 2
_CROSS_RANK = 64


def tables(dim):
  """Groups of tables, one table per categorical feature: {group: row length}."""
  return {"embedding": dim}


def cross(x0, name):
  """x <- x0 * (U V x + b) + x, repeated: [B, n] to [B, n]."""
  width = x0.shape.as_list()[1]
  x = x0
  with tf.compat.v1.variable_scope(name):
    for i in range(_CROSS_LAYERS):
      with tf.compat.v1.variable_scope("layer_%d" % i):
        down = tf.compat.v1.get_variable(
            "down", [width, _CROSS_RANK],
            initializer=tf.compat.v1.glorot_uniform_initializer())
        x = x0 * layers.dense(tf.matmul(x, down), width, name="up") + x
  return x


def logits(numeric, embeddings):
  """Builds the model.

  Args:
    numeric: float32 [B, N].
    embeddings: {group: list of float32 [B, row length]}, groups as in `tables`.

  Returns:
    float32 [B].
  """
  inputs = tf.concat([numeric] + embeddings["embedding"], axis=1)
  crossed = cross(inputs, name="cross")
  return layers.logit(layers.mlp(crossed, [256, 128], name="deep"))

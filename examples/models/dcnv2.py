# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DCNv2: cross layers, of low rank by default, then an MLP."""

import tensorflow.compat.v1 as tf

from models import layers

CROSS_LAYERS = 2
CROSS_RANK = 64


def tables(dim):
  """Returns {group: row length}; a group has a table per categorical feature."""
  return {"embedding": dim}


def cross(x0, name, num_layers=CROSS_LAYERS, rank=CROSS_RANK):
  """Applies x <- x0 * (W x + b) + x repeatedly: [B, n] to [B, n].

  This is the cross network of DCN V2 (Wang et al., 2021), equation (1). With a rank it
  is equation (2) with one expert and without activation.

  Args:
    x0: float32 [B, n].
    name: string, the variable scope.
    num_layers: int, number of repetitions.
    rank: int: W is U V with V [n, rank] and U [rank, n]; None or 0: W is [n, n].

  Returns:
    float32 [B, n].
  """
  width = x0.shape.as_list()[1]
  x = x0
  with tf.variable_scope(name):
    for i in range(num_layers):
      with tf.variable_scope("layer_%d" % i):
        if rank:
          down = tf.get_variable(
              "down", [width, rank],
              initializer=tf.glorot_uniform_initializer())
          product = layers.dense(tf.matmul(x, down), width, name="up")
        else:
          product = layers.dense(x, width, name="full")
        x = x0 * product + x
  return x


def logits(numeric, embeddings, cross_layers=CROSS_LAYERS, cross_rank=CROSS_RANK):
  """Builds the model.

  Args:
    numeric: float32 [B, N].
    embeddings: {group: list of float32 [B, row length]}, groups as in `tables`.
    cross_layers: int, number of cross layers.
    cross_rank: int, as `rank` of `cross`.

  Returns:
    float32 [B].
  """
  inputs = tf.concat([numeric] + embeddings["embedding"], axis=1)
  crossed = cross(inputs, "cross", cross_layers, cross_rank)
  return layers.logit(layers.mlp(crossed, [256, 128], name="deep"))

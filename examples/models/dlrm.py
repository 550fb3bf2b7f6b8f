# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DLRM: dot products of all pairs of embeddings, under an MLP."""

import numpy as np
import tensorflow as tf

from models import layers


def tables(dim):
  """Groups of tables, one table per categorical feature: {group: row length}."""
  return {"embedding": dim}


def pairwise_dots(vectors):
  """Dot product of each pair i > j: [B, n, dim] to [B, n (n - 1) / 2].

  With a gradient of its own: those of pairs are gathered into symmetric matrices and
  multiplied by the vectors once. TensorFlow's adds each to its place, and multiplies
  twice.
  """
  count = vectors.shape.as_list()[1]
  pairs = [(i, j) for i in range(count) for j in range(i)]
  lower = [i * count + j for i, j in pairs]
  # Of each entry of a matrix: which pair it is; the one behind the last on the diagonal.
  number = np.full([count, count], len(pairs), np.int32)
  for k, (i, j) in enumerate(pairs):
    number[i, j] = number[j, i] = k

  @tf.custom_gradient
  def dots_of(x):
    dots = tf.matmul(x, x, transpose_b=True)

    def grad(dy):
      padded = tf.pad(dy, [[0, 0], [0, 1]])
      matrices = tf.reshape(tf.gather(padded, number.ravel(), axis=1), [-1, count, count])
      return tf.matmul(matrices, x)

    return tf.gather(tf.reshape(dots, [-1, count * count]), lower, axis=1), grad

  return dots_of(vectors)


def logits(numeric, embeddings):
  """Builds the model.

  Args:
    numeric: float32 [B, N].
    embeddings: {group: list of float32 [B, row length]}, groups as in `tables`.

  Returns:
    float32 [B].
  """
  vectors = embeddings["embedding"]
  dim = vectors[0].shape.as_list()[1]
  bottom = layers.mlp(numeric, [64, dim], name="bottom")
  dots = pairwise_dots(tf.stack([bottom] + vectors, axis=1))
  top = tf.concat([bottom, dots], axis=1)
  top = layers.mlp(top, [256, 128], name="top")
  return layers.logit(top)

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DLRM: dot products of all pairs of embeddings, under an MLP."""

import tensorflow as tf

from models import layers


def tables(dim):
  """Groups of tables, one table per categorical feature: {group: row length}."""
  return {"embedding": dim}


def pairwise_dots(vectors):
  """Dot product of each pair i > j: [B, n, dim] to [B, n (n - 1) / 2]."""
  count = vectors.shape.as_list()[1]
  dots = tf.matmul(vectors, vectors, transpose_b=True)
  lower = [i * count + j for i in range(count) for j in range(i)]
  return tf.gather(tf.reshape(dots, [-1, count * count]), lower, axis=1)


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

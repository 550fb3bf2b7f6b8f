# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DLRM: dot products of all pairs of embeddings, then an MLP."""

import tensorflow.compat.v1 as tf

import embedding_variable

from models import layers


def tables(dim):
  """Returns {group: row length}; a group has a table per categorical feature."""
  return {"embedding": dim}


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
  dots = embedding_variable.dot_interaction([bottom] + vectors)
  top = tf.concat([bottom, dots], axis=1)
  top = layers.mlp(top, [256, 128], name="top")
  return layers.logit(top)

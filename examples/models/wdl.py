# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Wide & Deep: a linear model beside an MLP."""

import tensorflow.compat.v1 as tf

from models import layers


def tables(dim):
  """Returns {group: row length}; a group has a table per categorical feature."""
  return {"wide": 1, "deep": dim}


def logits(numeric, embeddings):
  """Builds the model.

  Args:
    numeric: float32 [B, N].
    embeddings: {group: list of float32 [B, row length]}, groups as in `tables`.

  Returns:
    float32 [B].
  """
  wide = tf.squeeze(tf.add_n(embeddings["wide"]), axis=1)
  wide += layers.logit(numeric, name="wide_numeric")
  deep = tf.concat([numeric] + embeddings["deep"], axis=1)
  deep = layers.mlp(deep, [256, 128, 64], name="deep")
  return wide + layers.logit(deep)

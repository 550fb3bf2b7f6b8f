# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers that sum over an axis or over pairs of vectors."""

import numpy as np
import tensorflow.compat.v1 as tf


def reduce_sum(context, layer, bottom):
  """Returns the sum over an axis; the axis remains with size 1."""
  del context
  return tf.reduce_sum(bottom, axis=layer.params["axis"], keepdims=True)


def reduce_mean(context, layer, bottom):
  """Returns the mean over an axis; the axis remains with size 1."""
  del context
  return tf.reduce_mean(bottom, axis=layer.params["axis"], keepdims=True)


def fm_order_2(context, layer, bottom):
  """Returns 0.5 ((sum of vectors)^2 - sum of their squares), `[rows, out_dim]`."""
  del context
  vectors = tf.reshape(bottom, [-1, layer.in_shapes[0].dims[0] //
                                layer.params["out_dim"], layer.params["out_dim"]])
  return 0.5 * (tf.square(tf.reduce_sum(vectors, axis=1)) -
                tf.reduce_sum(tf.square(vectors), axis=1))


def _columns(x, chosen):
  """Returns the chosen columns of x; each may be chosen once.

  Its gradient is a gather too. The gradient of tf.gather would add duplicates, which
  cannot occur.
  """
  place = np.full([x.shape.as_list()[1]], len(chosen), np.int32)
  place[chosen] = np.arange(len(chosen))

  def gradient(slope):
    # Columns that were not chosen read the column of zeros.
    return tf.gather(tf.pad(slope, [[0, 0], [0, 1]]), place, axis=1)

  return tf.custom_gradient(
      lambda y: (tf.gather(y, chosen, axis=1), gradient))(x)


def interaction(context, layer, mlp, vectors):
  """Returns the first bottom, the dot products of all pairs of vectors, and one zero.

  Vector 0 is the first bottom, vector i is slot i - 1. The product of vectors row <
  column is at position column (column - 1) / 2 + row.
  """
  del context
  slots, floats = layer.in_shapes[1].dims
  n = slots + 1
  every = tf.concat([mlp[:, tf.newaxis, :], vectors], axis=1)
  products = tf.reshape(tf.matmul(every, every, transpose_b=True), [-1, n * n])
  pairs = np.array([row * n + column for column in range(n) for row in range(column)],
                   np.int32)
  # The zero at the end gives the output upstream's width.
  padded = tf.pad(_columns(products, pairs), [[0, 0], [0, 1]])
  return tf.reshape(tf.concat([mlp, padded], axis=1), [-1, floats + len(pairs) + 1])

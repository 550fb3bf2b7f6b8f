# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers that sum over an axis or over pairs of vectors."""

import numpy as np
import tensorflow.compat.v1 as tf

from hugectr.layers import layer as layer_lib
from hugectr.layers.shapes import Shape, flat, need, rank_is


class ReduceSum(layer_lib.Layer):
  """Sum over an axis, which stays as an axis of 1."""
  keys = {
      "axis": layer_lib.integer(
          "Axis; 0 would be the batch.", minimum=1, maximum=2)
  }
  required = ("axis",)
  arguments = {
      "axis": ("axis", 1)
  }

  @staticmethod
  def shape(shapes, params):
    shape, = shapes
    axis = params["axis"]
    need(axis <= len(shape.dims), "there is no axis %d in %s", axis, shape)
    dims = list(shape.dims)
    dims[axis - 1] = 1
    return [Shape(shape.rows, tuple(dims))]

  @staticmethod
  def build(context, layer, bottom):
    """Returns the sum over an axis; the axis remains with size 1."""
    return tf.reduce_sum(bottom, axis=layer.params["axis"], keepdims=True)


class ReduceMean(ReduceSum):
  """Mean over an axis, which stays as an axis of 1."""

  @staticmethod
  def build(context, layer, bottom):
    """Returns the mean over an axis; the axis remains with size 1."""
    return tf.reduce_mean(bottom, axis=layer.params["axis"], keepdims=True)


class FmOrder2(layer_lib.Layer):
  """Vectors of out_dim side by side to 0.5 ((sum)^2 - sum of squares)."""
  keys = {
      "out_dim": layer_lib.integer("Floats of a vector.", minimum=1)
  }
  required = ("out_dim",)
  arguments = {
      "out_dim": ("out_dim", 0)
  }

  @staticmethod
  def shape(shapes, params):
    shape, = shapes
    rank_is(shape, 2)
    need(shape.dims[0] % params["out_dim"] == 0, "out_dim must divide the width of the "
         "bottom, %d, got %d", shape.dims[0], params["out_dim"])
    return [flat(params["out_dim"], shape.rows)]

  @staticmethod
  def build(context, layer, bottom):
    """Returns 0.5 ((sum of vectors)^2 - sum of their squares), `[rows, out_dim]`."""
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


class Interaction(layer_lib.Layer):
  """Bottoms: [batch, w] and [batch, slots, w]. Gives the first, the dot products of all pairs
  of its vectors, and one zero.
  """
  runs_in_float16 = True
  least_bottoms = 2

  @staticmethod
  def shape(shapes, params):
    need(len(shapes) == 2, "expected 2 bottoms, got %d", len(shapes))
    mlp, vectors = shapes
    rank_is(mlp, 2, "the first bottom")
    rank_is(vectors, 3, "the second bottom")
    need(mlp.dims[0] == vectors.dims[1] and mlp.rows == vectors.rows,
         "the first bottom %s and the vectors of the second %s: expected one length",
         mlp, vectors)
    n = 1 + vectors.dims[0]
    return [flat(mlp.dims[0] + n * (n - 1) // 2 + 1, mlp.rows)]

  @staticmethod
  def build(context, layer, mlp, vectors):
    """Returns the first bottom, the dot products of all pairs of vectors, and one zero.

    Vector 0 is the first bottom, vector i is slot i - 1. The product of vectors row <
    column is at position column (column - 1) / 2 + row.
    """
    slots, floats = layer.in_shapes[1].dims
    n = slots + 1
    every = tf.concat([mlp[:, tf.newaxis, :], vectors], axis=1)
    products = tf.reshape(tf.matmul(every, every, transpose_b=True), [-1, n * n])
    pairs = np.array([row * n + column for column in range(n) for row in range(column)],
                     np.int32)
    # The zero at the end gives the output upstream's width.
    padded = tf.pad(_columns(products, pairs), [[0, 0], [0, 1]])
    return tf.reshape(tf.concat([mlp, padded], axis=1), [-1, floats + len(pairs) + 1])

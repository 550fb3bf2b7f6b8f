# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Dot products of all pairs of a sample's vectors, with TensorFlow's ops."""

import numpy as np
import tensorflow as tf


def matmul_dots(vectors):
  """The dot products of dot_interaction with TensorFlow's ops: `[B, n, D]` to pairs.

  The forward and the backward pass take one matrix product each: the gradients of pairs
  are gathered into symmetric matrices, which are multiplied by the vectors once.
  TensorFlow's own gradient needs two products.
  """
  count = vectors.shape.as_list()[1]
  pairs = [(i, j) for i in range(count) for j in range(i)]
  lower = [i * count + j for i, j in pairs]
  # Index of the pair of each matrix entry; diagonal entries point behind the last pair,
  # to a zero.
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

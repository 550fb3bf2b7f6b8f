# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Products of matrices per sample, attention, and masks of sequences."""

import math

import tensorflow.compat.v1 as tf

from hugectr.layers import elementwise


def matrix_multiply(context, layer, first, second):
  """Returns the matrix products of the last two axes."""
  del context, layer
  return tf.matmul(first, second)


def _heads(tensor, steps, heads, width):
  """Returns `[rows, heads, steps, width]` of `[rows, steps, heads * width]`."""
  return tf.transpose(tf.reshape(tensor, [-1, steps, heads, width]), [0, 2, 1, 3])


def _side_by_side(tensor, steps, full):
  """Returns `[rows, steps, full]` of `[rows, heads, steps, full / heads]`."""
  return tf.reshape(tf.transpose(tensor, [0, 2, 1, 3]), [-1, steps, full])


def multi_head_attention(context, layer, query, key, value=None, mask=None):
  """Returns softmax(Q K^T / sqrt(width of a head)) V of each head, side by side.

  Args:
    context: Context.
    layer: Layer.
    query: `[rows, steps, heads * width]`.
    key: `[rows, others, heads * width]`.
    value: like key.
    mask: `[rows, 1, steps or 1, others]`; a score whose mask is 0 is lowered by 10000.

  Returns:
    A tensor like query. With transpose_b, a list: Q K^T / sqrt(width of a head),
    `[rows, heads, steps, others]`, and the value in heads. Without a value: Q K^T; or, if
    the bottoms are such scores and values, the values that they mix, `[rows, steps,
    heads * width]`.
  """
  del context
  if value is None and len(layer.in_shapes[0].dims) == 3:
    return _side_by_side(tf.matmul(query, key), *layer.out_shapes[0].dims)
  heads = layer.params.get("num_attention_heads", 1)
  steps, full = layer.in_shapes[0].dims
  others, width = layer.in_shapes[1].dims[0], full // heads
  query, key = (_heads(t, n, heads, width) for t, n in ((query, steps), (key, others)))
  products = tf.matmul(query, key, transpose_b=True)
  if value is None:
    return products
  scores, value = products / math.sqrt(width), _heads(value, others, heads, width)
  if layer.params.get("transpose_b"):
    return [scores, value]
  if mask is not None:
    scores = elementwise.masked(scores, mask)
  return _side_by_side(tf.matmul(tf.nn.softmax(scores), value), steps, full)


def _below(lengths, size):
  """Returns `[rows, size]`, 1 where a position is below the row's length, else 0."""
  return tf.cast(tf.range(size, dtype=tf.float32) < lengths, tf.float32)


def sequence_mask(context, layer, first, second=None):
  """Returns a mask of lengths, `[rows, 1, 1, size]`, or of two, `[rows, 1, from, to]`.

  Args:
    context: Context.
    layer: Layer.
    first: `[rows, 1]`, lengths.
    second: `[rows, 1]`, lengths in the last axis; None: there is one length.
  """
  del context
  _, size_from, size_to = layer.out_shapes[0].dims
  if second is None:
    return _below(first, size_to)[:, tf.newaxis, tf.newaxis, :]
  return (_below(first, size_from)[:, tf.newaxis, :, tf.newaxis] *
          _below(second, size_to)[:, tf.newaxis, tf.newaxis, :])

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Products of matrices per sample, attention, and masks of sequences."""

import math

import tensorflow.compat.v1 as tf

from hugectr.layers import elementwise
from hugectr.layers import layer as layer_lib
from hugectr.layers.shapes import Shape, need, rank_is


class MatrixMultiply(layer_lib.Layer):
  """Matrix product of the last two axes, for each sample: [batch, m, k] and [batch, k, n] to
  [batch, m, n].
  """
  least_bottoms = 2

  @staticmethod
  def shape(shapes, params):
    need(len(shapes) == 2, "expected 2 bottoms, got %d", len(shapes))
    first, second = shapes
    need(len(first.dims) in (2, 3) and len(first.dims) == len(second.dims), "bottoms must "
         "both have 3 or 4 axes, got %s and %s", first, second)
    need(first.rows == second.rows and first.dims[:-2] == second.dims[:-2] and
         first.dims[-1] == second.dims[-2], "%s and %s cannot be multiplied", first, second)
    return [Shape(first.rows, first.dims[:-1] + second.dims[-1:])]

  @staticmethod
  def build(context, layer, first, second):
    """Returns the matrix products of the last two axes."""
    return tf.matmul(first, second)


def _heads(tensor, steps, heads, width):
  """Returns `[rows, heads, steps, width]` of `[rows, steps, heads * width]`."""
  return tf.transpose(tf.reshape(tensor, [-1, steps, heads, width]), [0, 2, 1, 3])


def _side_by_side(tensor, steps, full):
  """Returns `[rows, steps, full]` of `[rows, heads, steps, full / heads]`."""
  return tf.reshape(tf.transpose(tensor, [0, 2, 1, 3]), [-1, steps, full])


def _mixed_values(scores, value):
  """Returns the shape of the values in heads that scores in heads have mixed."""
  rank_is(value, 4, "V")
  need(scores.rows == value.rows and scores.dims[0] == value.dims[0] and
       scores.dims[2] == value.dims[1], "scores [batch, heads, m, n] need V [batch, heads, "
       "n, width], got %s and %s", scores, value)
  return Shape(scores.rows, (scores.dims[1], value.dims[0] * value.dims[2]))


class MultiHeadAttention(layer_lib.Layer):
  """softmax(Q K^T / sqrt(width of a head)) V for each head; no parameters. Bottoms: Q, K, V
  [batch, steps, width], and perhaps a mask [batch, 1, steps of Q, steps of K], whose zeros
  exclude. Gives the shape of Q. Before 23.09 in two layers: with transpose_b from Q, K, V the
  scores [batch, heads, steps of Q, steps of K] / sqrt(width of a head), and V in heads; then
  from scores and V the mixed values, of the shape of Q. Before 4.3: from Q and K, scores that
  are not divided.
  """
  least_bottoms = 2
  keys = {
      "num_attention_heads": layer_lib.integer(
          "Heads, which divide the width.", minimum=1, default=1),
      "transpose_b": layer_lib.boolean(
          "True: gives the scores of Q and K, and V in heads.",
          default=False)
  }
  arguments = {
      "num_attention_heads": ("num_attention_heads", 1)
  }
  other_arguments = ("transpose_b",)

  @staticmethod
  def shape(shapes, params):
    makes_scores = params.get("transpose_b", False)
    if makes_scores:
      need(len(shapes) == 3, "expected 3 bottoms with transpose_b, got %d", len(shapes))
    need(len(shapes) in (2, 3, 4), "expected Q, K, V and perhaps a mask, or 2 bottoms of an "
         "older form, got %d", len(shapes))
    if len(shapes) == 2 and len(shapes[0].dims) == 3:
      return [_mixed_values(*shapes)]
    query, key, value = shapes[:3] if len(shapes) > 2 else (shapes[0], shapes[1], shapes[1])
    for name, shape in (("Q", query), ("K", key), ("V", value)):
      rank_is(shape, 3, name)
    heads = params.get("num_attention_heads", 1)
    need(query.dims[1] % heads == 0, "num_attention_heads must divide the width %d, got %d",
         query.dims[1], heads)
    need(query.rows == key.rows == value.rows and query.dims[1] == key.dims[1] and
         key.dims == value.dims, "Q, K and V: expected one width, K and V also in steps, got "
         "%s, %s and %s", query, key, value)
    if len(shapes) == 4:
      expected = Shape(query.rows, (1, query.dims[0], key.dims[0]))
      need(shapes[3] == expected or shapes[3] == expected._replace(
          dims=(1, 1, key.dims[0])), "the mask: expected %s, got %s", expected, shapes[3])
    scores = Shape(query.rows, (heads, query.dims[0], key.dims[0]))
    if makes_scores:
      return [scores, Shape(query.rows, (heads, key.dims[0], query.dims[1] // heads))]
    return [scores] if len(shapes) == 2 else [query]

  @staticmethod
  def build(context, layer, query, key, value=None, mask=None):
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

  @staticmethod
  def tops(params):
    return 2 if params.get("transpose_b") else 1

  @classmethod
  def fill(cls, given):
    super().fill(given)
    if given.get("transpose_b", False):
      given.put("transpose_b", True)


def _below(lengths, size):
  """Returns `[rows, size]`, 1 where a position is below the row's length, else 0."""
  return tf.cast(tf.range(size, dtype=tf.float32) < lengths, tf.float32)


class SequenceMask(layer_lib.Layer):
  """Ones where a position is below the length, else zeros. One bottom [batch, 1]: gives
  [batch, 1, 1, max_sequence_len]. Two: their lengths are those of the rows and of the columns
  of [batch, 1, from, to].
  """
  takes_many = True
  keys = {
      "max_sequence_len": layer_lib.integer("With one bottom.", minimum=1),
      "max_sequence_len_from": layer_lib.integer("Rows, with two bottoms.", minimum=1),
      "max_sequence_len_to": layer_lib.integer("Columns, with two bottoms.", minimum=1)
  }
  other_arguments = ("max_sequence_len", "max_sequence_len_from", "max_sequence_len_to",)

  @staticmethod
  def shape(shapes, params):
    need(len(shapes) <= 2, "expected 1 or 2 bottoms, got %d", len(shapes))
    for shape in shapes:
      need(shape.dims == (1,), "lengths: expected [batch, 1], got %s", shape)
    names = ["max_sequence_len"] if len(shapes) == 1 else [
        "max_sequence_len_from", "max_sequence_len_to"]
    for name in names:
      need(name in params, "'%s' is missing, which %d bottom%s need%s", name, len(shapes),
           *(("", "s") if len(shapes) == 1 else ("s", "")))
    sizes = [params[name] for name in names]
    return [Shape(shapes[0].rows, (1,) + tuple(sizes if len(sizes) == 2 else [1] + sizes))]

  @staticmethod
  def build(context, layer, first, second=None):
    """Returns a mask of lengths, `[rows, 1, 1, size]`, or of two, `[rows, 1, from, to]`.

    Args:
      context: Context.
      layer: Layer.
      first: `[rows, 1]`, lengths.
      second: `[rows, 1]`, lengths in the last axis; None: there is one length.
    """
    _, size_from, size_to = layer.out_shapes[0].dims
    if second is None:
      return _below(first, size_to)[:, tf.newaxis, tf.newaxis, :]
    return (_below(first, size_from)[:, tf.newaxis, :, tf.newaxis] *
            _below(second, size_to)[:, tf.newaxis, tf.newaxis, :])

  @staticmethod
  def fill(given):
    if len(given.bottoms) == 1:
      given.put("max_sequence_len", given.get("max_sequence_len", 1))
    else:
      for name in ("max_sequence_len_from", "max_sequence_len_to"):
        given.put(name, given.get(name, 1))

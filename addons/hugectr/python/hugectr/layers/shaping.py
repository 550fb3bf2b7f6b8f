# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers that move numbers without changing them."""

import tensorflow.compat.v1 as tf

from hugectr.config import shapes


def concat(context, layer, *bottoms):
  """Returns the bottoms side by side."""
  del context
  return tf.concat(bottoms, shapes.concat_axis(layer.in_shapes, layer.params))


def slices(context, layer, bottom):
  """Returns a list with one range of the last axis per top; a full range is no copy."""
  del context
  whole = [0, layer.in_shapes[0].dims[-1]]
  return [tf.identity(bottom) if list(r) == whole else bottom[..., r[0]:r[1]]
          for r in layer.params["ranges"]]


def reshape(context, layer, bottom):
  """Returns the numbers with other axes, or the numbers of some slots side by side."""
  del context
  if "selected" in layer.params:
    bottom = tf.gather(bottom, layer.params["selected"], axis=1)
  return tf.reshape(bottom, (-1,) + layer.out_shapes[0].dims)


def scale(context, layer, bottom):
  """Repeats each number of a row (axis 0), or each row (axis 1), `factor` times.

  Args:
    context: Context.
    layer: Layer.
    bottom: `[rows, width]`.

  Returns:
    `[rows, width * factor]` or `[rows * factor, width]`.
  """
  del context
  clause = layer.params["scale_param"]
  factor, width = clause.get("factor", 1), layer.in_shapes[0].dims[0]
  if clause.get("axis", 1) == 0:
    return tf.reshape(tf.tile(bottom[:, :, tf.newaxis], [1, 1, factor]),
                      [-1, width * factor])
  return tf.reshape(tf.tile(bottom[:, tf.newaxis, :], [1, factor, 1]), [-1, width])


def gather(context, layer, bottom):
  """Returns some positions of the last axis, in the order of the indices."""
  del context
  return tf.gather(bottom, layer.params["indices"], axis=-1)


def select(context, layer, bottom):
  """Returns some positions of an axis, in the order of `index`."""
  del context
  return tf.gather(bottom, layer.params["index"], axis=layer.params["dim"])


def fused_reshape_concat(context, layer, *bottoms):
  """Returns the vectors of each slot side by side: all slots but the last; the last.

  Args:
    context: Context.
    layer: Layer.
    *bottoms: `[rows, slots, floats]` each.

  Returns:
    List of `[rows * (slots - 1), sum of floats]` and `[rows, sum of floats]`.
  """
  del context
  both = tf.concat(bottoms, 2)
  width = layer.out_shapes[0].dims[0]
  return [tf.reshape(both[:, :-1], [-1, width]), both[:, -1]]


def fused_reshape_concat_general(context, layer, *bottoms):
  """Returns the vectors of each slot side by side, `[rows * slots, sum of floats]`."""
  del context
  return tf.reshape(tf.concat(bottoms, 2), [-1, layer.out_shapes[0].dims[0]])

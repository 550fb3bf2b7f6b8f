# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers that move numbers without changing them."""

import tensorflow as tf

from hugectr.config import shapes


def concat(context, layer, *bottoms):
  """Returns the bottoms side by side."""
  del context
  return tf.concat(bottoms, shapes.concat_axis(layer.in_shapes, layer.params))


def slices(context, layer, bottom):
  """Returns a list with one range of columns per top."""
  del context
  return [bottom[:, first:end] for first, end in layer.params["ranges"]]


def reshape(context, layer, bottom):
  """Returns the numbers with another last axis, or the numbers of some slots side by side."""
  del context
  if "selected" in layer.params:
    bottom = tf.gather(bottom, layer.params["selected"], axis=1)
  return tf.reshape(bottom, [-1, layer.out_shapes[0].dims[0]])


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

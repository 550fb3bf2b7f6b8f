# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers that move numbers and change none."""

import tensorflow as tf

from hugectr.config import shapes


def concat(context, layer, *bottoms):
  """Returns the bottoms side by side."""
  del context
  return tf.concat(bottoms, shapes.concat_axis(layer.in_shapes, layer.params))


def slices(context, layer, bottom):
  """Returns one range of columns per top, a list."""
  del context
  return [bottom[:, first:end] for first, end in layer.params["ranges"]]


def reshape(context, layer, bottom):
  """Returns the numbers with another last axis, or those of some slots side by side."""
  del context
  if "selected" in layer.params:
    bottom = tf.gather(bottom, layer.params["selected"], axis=1)
  return tf.reshape(bottom, [-1, layer.out_shapes[0].dims[0]])

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Elementwise layers."""

import functools

import tensorflow.compat.v1 as tf

from hugectr.layers import layer as layer_lib
from hugectr.layers import seeds
from hugectr.layers.shapes import need, same


class ReLU(layer_lib.Layer):
  """max(x, 0)."""
  runs_in_float16 = True

  @staticmethod
  def build(context, layer, bottom):
    """Returns max(x, 0)."""
    return tf.nn.relu(bottom)


class ELU(layer_lib.Layer):
  """x where x is positive, alpha (exp(x) - 1) elsewhere."""
  keys = {
      "elu_param": layer_lib.section({
              "alpha": layer_lib.number("Scale of the negative side.")
          }, required=["alpha"])
  }
  required = ("elu_param",)
  arguments = {
      "elu_param.alpha": ("elu_alpha", 1.0)
  }

  @staticmethod
  def build(context, layer, bottom):
    """Returns x if it is positive, else alpha (exp(x) - 1)."""
    alpha = layer.params["elu_param"]["alpha"]
    # tf.nn.elu has alpha 1.
    return tf.nn.relu(bottom) + alpha * tf.math.expm1(tf.minimum(bottom, 0.))


class Sigmoid(layer_lib.Layer):
  """1 / (1 + exp(-x))."""

  @staticmethod
  def build(context, layer, bottom):
    """Returns 1 / (1 + exp(-x))."""
    return tf.sigmoid(bottom)


def masked(scores, mask):
  """Returns scores - 10000 (1 - mask)."""
  return scores - (1. - mask) * 10000.


class Softmax(layer_lib.Layer):
  """exp(x) over its sum, along the last axis. With a mask as the second bottom, of x = factor
  * x - (1 - mask) * 10000.
  """
  takes_many = True
  keys = {
      "factor": layer_lib.number("Beside a mask.", default=1.0)
  }
  other_arguments = ("factor",)

  @staticmethod
  def shape(shapes, params):
    need(len(shapes) <= 2, "expected 1 bottom, or 2 with a mask, got %d", len(shapes))
    if len(shapes) == 1:
      need("factor" not in params, "factor needs a mask as the second bottom")
    else:
      shape, mask = shapes
      need(len(mask.dims) == len(shape.dims) and mask.rows == shape.rows and
           all(m in (1, d) for m, d in zip(mask.dims, shape.dims)), "the mask %s does not fit "
           "%s: each axis: expected that size, or 1", mask, shape)
    return shapes[:1]

  @staticmethod
  def build(context, layer, bottom, mask=None):
    """Returns exp(x) / sum of exp(x) over the last axis; x is as in `masked` with a mask."""
    if mask is not None:
      bottom = masked(layer.params.get("factor", 1.) * bottom, mask)
    return tf.nn.softmax(bottom)

  @staticmethod
  def fill(given):
    if len(given.bottoms) > 1:
      given.put("factor", given.get("factor", 1.0))


class Dropout(layer_lib.Layer):
  """Inverted dropout; nothing in evaluation."""
  runs_in_float16 = True
  keys = {
      "rate": layer_lib.number(
          "Part that is set to zero in training; the rest is divided by 1 - rate.",
          minimum=0, exclusiveMaximum=1, default=0.5)
  }
  arguments = {
      "rate": ("dropout_rate", 0.5)
  }

  @staticmethod
  def build(context, layer, bottom):
    """Returns x with a random part set to zero and the rest divided by 1 - rate."""
    rate = layer.params.get("rate", 0.5)
    if not context.is_training or rate == 0:
      return bottom
    return tf.nn.dropout(bottom, rate=rate, seed=seeds.of(layer.name, "dropout"))


class Cast(layer_lib.Layer):
  """The same numbers; in mixed precision in float16. Layers cast what they take, so none
  needs it.
  """
  runs_in_float16 = True

  @staticmethod
  def build(context, layer, bottom):
    """Returns x, since layers cast their inputs."""
    return bottom


class Add(layer_lib.Layer):
  """Sum of the bottoms."""
  runs_in_float16 = True
  least_bottoms = 2
  shape = staticmethod(same)

  @staticmethod
  def build(context, layer, *bottoms):
    """Returns the sum of the bottoms."""
    return functools.reduce(tf.add, bottoms)


class Sub(layer_lib.Layer):
  """The first bottom minus the second."""
  runs_in_float16 = True
  least_bottoms = 2

  @staticmethod
  def shape(shapes, params):
    need(len(shapes) == 2, "expected 2 bottoms, got %d", len(shapes))
    return same(shapes, params)

  @staticmethod
  def build(context, layer, first, second):
    """Returns the first bottom minus the second."""
    return first - second


class DotProduct(layer_lib.Layer):
  """Product of the bottoms, element by element."""
  runs_in_float16 = True
  least_bottoms = 2
  shape = staticmethod(same)

  @staticmethod
  def build(context, layer, *bottoms):
    """Returns the product of the bottoms."""
    return functools.reduce(tf.multiply, bottoms)


class ElementwiseMultiply(DotProduct):
  """The same."""

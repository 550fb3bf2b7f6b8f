# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers with a weight matrix: InnerProduct, MLP, MultiCross, Multiply."""

import tensorflow.compat.v1 as tf

from hugectr.config import shapes
from hugectr.layers import initializers


def inner_product(context, layer, bottom):
  """Returns x W + b over the last axis."""
  clause = layer.params["fc_param"]
  width, out = layer.in_shapes[0].dims[-1], clause["num_output"]
  weight = context.parameter(
      layer.name, "weight", [width, out],
      initializers.named(clause.get("weight_init", "XavierNorm"), width, out))
  bias_init = initializers.bias(out)
  if "bias_init" in clause:
    # The fan-in of a bias is 0.
    bias_init = initializers.named(clause["bias_init"], 0, out)
  bias = context.parameter(layer.name, "bias", [out], bias_init)
  dims = layer.in_shapes[0].dims
  if len(dims) == 1:
    return context.add_bias(tf.matmul(bottom, weight), bias)
  flat = context.add_bias(tf.matmul(tf.reshape(bottom, [-1, width]), weight), bias)
  return tf.reshape(flat, (-1,) + dims[:-1] + (out,))


def fused_inner_product(context, layer, bottom):
  """Returns max(x W + b, 0)."""
  return tf.nn.relu(inner_product(context, layer, bottom))


def mlp(context, layer, bottom):
  """Returns the result of layers x W + b, each followed by max(x, 0) unless it has none."""
  clause = layer.params["mlp_param"]
  width, dims = layer.in_shapes[0].dims[-1], layer.in_shapes[0].dims
  x = bottom if len(dims) == 1 else tf.reshape(bottom, [-1, width])
  for k, (out, activation, has_bias) in enumerate(shapes.mlp_layers(clause)):
    default = initializers.of_fan_in(width)
    weight = context.parameter(
        layer.name, "weight_%d" % k, [width, out],
        initializers.named(clause["weight_init"], width, out) if "weight_init" in clause
        else default)
    x = tf.matmul(x, weight)
    if has_bias:
      x = context.add_bias(x, context.parameter(
          layer.name, "bias_%d" % k, [out],
          initializers.named(clause["bias_init"], 0, out) if "bias_init" in clause
          else default))
    if activation == "Relu":
      x = tf.nn.relu(x)
    width = out
  return x if len(dims) == 1 else tf.reshape(x, (-1,) + dims[:-1] + (width,))


def _projected(context, layer, bottom):
  """Returns x(n) of x(l + 1) = x(0) * (x(l) U(l) V(l) + b(l)) + x(l)."""
  clause = layer.params["mc_param"]
  width, columns = layer.in_shapes[0].dims[0], clause["projection_dim"]
  weight_init = clause.get("weight_init", "XavierUniform")
  x = bottom
  for k in range(clause["num_layers"]):
    first, second = (
        context.parameter(layer.name, "%s_%d" % (name, k), shape,
                          initializers.named(weight_init, *shape))
        for name, shape in (("u", [width, columns]), ("v", [columns, width])))
    bias = context.parameter(
        layer.name, "bias_%d" % k, [width],
        initializers.named(clause.get("bias_init", "Zero"), width, 1))
    x = bottom * context.add_bias(tf.matmul(tf.matmul(x, first), second), bias) + x
  return x


def multi_cross(context, layer, bottom):
  """Returns x(n) of x(l + 1) = x(0) (x(l) . w(l)) + b(l) + x(l), or of `_projected`."""
  clause = layer.params["mc_param"]
  if clause.get("projection_dim"):
    return _projected(context, layer, bottom)
  width = layer.in_shapes[0].dims[0]
  x = bottom
  for k in range(clause["num_layers"]):
    weight = context.parameter(
        layer.name, "weight_%d" % k, [width],
        initializers.named(clause.get("weight_init", "XavierUniform"), width, 1))
    bias = context.parameter(
        layer.name, "bias_%d" % k, [width],
        initializers.named(clause.get("bias_init", "Zero"), width, 1))
    x = bottom * tf.matmul(x, weight[:, tf.newaxis]) + bias + x
  return x


def multiply(context, layer, bottom):
  """Multiplies each of `[rows, slots]` numbers by its row of the weight; concatenates."""
  slots, floats = layer.params["weight_dims"]
  weight = context.parameter(
      layer.name, "weight", [slots, floats],
      initializers.named(layer.params.get("weight_init", "XavierUniform"), slots, floats))
  return tf.reshape(bottom[:, :, tf.newaxis] * weight, [-1, slots * floats])

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers with a weight matrix."""

import tensorflow.compat.v1 as tf

from hugectr.layers import initializers
from hugectr.layers import layer as layer_lib
from hugectr.layers.shapes import Shape, flat, flat_only, need, rank_is


class InnerProduct(layer_lib.Layer):
  """x W + b over the last axis."""
  runs_in_float16 = True
  keys = {
      "fc_param": layer_lib.section({
              "num_output": layer_lib.integer("Width of the output.", minimum=1),
              "weight_init": layer_lib.initializer(
                  "Initial weight.", default="XavierNorm"),
              "bias_init": layer_lib.initializer(
                  "Initial bias; unless given a truncated normal distribution of "
                  "deviation sqrt(1 / num_output).")
          }, required=["num_output"])
  }
  required = ("fc_param",)
  arguments = {
      "fc_param.num_output": ("num_output", 1),
      "fc_param.weight_init": ("weight_init_type", layer_lib.OMITTED),
      "fc_param.bias_init": ("bias_init_type", layer_lib.OMITTED)
  }

  @staticmethod
  def shape(shapes, params):
    shape, = shapes
    return [Shape(shape.rows, shape.dims[:-1] + (params["fc_param"]["num_output"],))]

  @staticmethod
  def build(context, layer, bottom):
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


class FusedInnerProduct(InnerProduct):
  """InnerProduct, then ReLU."""
  other_arguments = ("act_type",)

  @staticmethod
  def build(context, layer, bottom):
    """Returns max(x W + b, 0)."""
    return tf.nn.relu(InnerProduct.build(context, layer, bottom))

  @classmethod
  def fill(cls, given):
    super().fill(given)
    if given.get("act_type", "Relu") == "Non":
      given.type = "InnerProduct"


def _layers_of(clause):
  """Returns [(width, activation, has_bias)] of an mlp_param.

  Raises:
    ShapeError: activations or biases have another length than num_outputs.
  """
  widths = clause["num_outputs"]
  acts = clause.get("activations", [clause.get("act_type", "Relu")] * len(widths))
  biases = clause.get("biases", [clause.get("use_bias", True)] * len(widths))
  for name, values in (("activations", acts), ("biases", biases)):
    need(len(values) == len(widths), "mlp_param.%s: expected %d items, one per layer, got "
         "%d", name, len(widths), len(values))
  return list(zip(widths, acts, biases))


class MLP(layer_lib.Layer):
  """InnerProduct layers, each with its activation."""
  runs_in_float16 = True
  keys = {
      "mlp_param": layer_lib.section({
              "num_outputs": layer_lib.array(
                  "Width of each layer.", {"type": "integer", "minimum": 1}, minItems=1),
              "act_type": layer_lib.one_of(
                  "Activation of all layers.", ["Relu", "Non"], default="Relu"),
              "activations": layer_lib.array(
                  "Activation of each layer, instead of act_type.",
                  {"enum": ["Relu", "Non"]}, minItems=1),
              "use_bias": layer_lib.boolean(
                  "Whether layers have a bias.", default=True),
              "biases": layer_lib.array(
                  "The same for each layer, instead of use_bias.",
                  {"type": "boolean"}, minItems=1),
              "weight_init": layer_lib.initializer(
                  "Initial weights; unless given uniform in ±sqrt(1 / inputs)."),
              "bias_init": layer_lib.initializer(
                  "Initial biases; unless given uniform in ±sqrt(1 / inputs).")
          }, required=["num_outputs"])
  }
  required = ("mlp_param",)
  arguments = {
      "mlp_param.weight_init": ("weight_init_type", layer_lib.OMITTED),
      "mlp_param.bias_init": ("bias_init_type", layer_lib.OMITTED)
  }
  other_arguments = ("num_outputs", "activations", "act_type", "biases", "use_bias",)

  @staticmethod
  def shape(shapes, params):
    shape, = shapes
    width, _, _ = _layers_of(params["mlp_param"])[-1]
    return [Shape(shape.rows, shape.dims[:-1] + (width,))]

  @staticmethod
  def build(context, layer, bottom):
    """Returns the result of layers x W + b, each followed by max(x, 0) unless it has none."""
    clause = layer.params["mlp_param"]
    width, dims = layer.in_shapes[0].dims[-1], layer.in_shapes[0].dims
    x = bottom if len(dims) == 1 else tf.reshape(bottom, [-1, width])
    for k, (out, activation, has_bias) in enumerate(_layers_of(clause)):
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

  @classmethod
  def fill(cls, given):
    super().fill(given)
    given.put("mlp_param.num_outputs", given.get("num_outputs", []))
    if given.get("activations", []):
      given.put("mlp_param.activations", given.get_activations())
    else:
      given.put("mlp_param.act_type", given.get("act_type", "Relu"))
    if given.get("biases", []):
      given.put("mlp_param.biases", [bool(b) for b in given.get("biases", [])])
    else:
      given.put("mlp_param.use_bias", bool(given.get("use_bias", True)))


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


class MultiCross(layer_lib.Layer):
  """x(l+1) = x(0) (x(l) . w(l)) + b(l) + x(l). With projection_dim: x(l+1) = x(0) * (x(l)
  U(l) V(l) + b(l)) + x(l), element by element.
  """
  keys = {
      "mc_param": layer_lib.section({
              "num_layers": layer_lib.integer("Cross layers.", minimum=1),
              "weight_init": layer_lib.initializer(
                  "Initial weight.", default="XavierUniform"),
              "bias_init": layer_lib.initializer("Initial bias.", default="Zero"),
              "projection_dim": layer_lib.integer(
                  "Columns of U; 0: each layer has a vector w.",
                  minimum=0, default=0)
          }, required=["num_layers"])
  }
  required = ("mc_param",)
  arguments = {
      "mc_param.num_layers": ("num_layers", 0),
      "mc_param.projection_dim": ("projection_dim", 0),
      "mc_param.weight_init": ("weight_init_type", layer_lib.OMITTED),
      "mc_param.bias_init": ("bias_init_type", layer_lib.OMITTED)
  }
  shape = staticmethod(flat_only)

  @staticmethod
  def build(context, layer, bottom):
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


class WeightMultiply(layer_lib.Layer):
  """[batch, slots] to [batch, slots * floats]: each number times a row of the weight."""
  keys = {
      "weight_dims": layer_lib.array(
          "[slots, floats].", {"type": "integer", "minimum": 1}, minItems=2, maxItems=2),
      "weight_init": layer_lib.initializer("Initial weight.", default="XavierUniform")
  }
  required = ("weight_dims",)
  arguments = {
      "weight_dims": ("weight_dims", []),
      "weight_init": ("weight_init_type", layer_lib.OMITTED)
  }

  @staticmethod
  def shape(shapes, params):
    shape, = shapes
    rank_is(shape, 2)
    slots, floats = params["weight_dims"]
    need(shape.dims[0] == slots, "weight_dims[0]: expected the width of the bottom, %d, "
         "got %d", shape.dims[0], slots)
    return [flat(slots * floats, shape.rows)]

  @staticmethod
  def build(context, layer, bottom):
    """Multiplies each of `[rows, slots]` numbers by its row of the weight; concatenates."""
    slots, floats = layer.params["weight_dims"]
    weight = context.parameter(
        layer.name, "weight", [slots, floats],
        initializers.named(layer.params.get("weight_init", "XavierUniform"), slots, floats))
    return tf.reshape(bottom[:, :, tf.newaxis] * weight, [-1, slots * floats])


class Multiply(WeightMultiply):
  """[batch, slots] to [batch, slots * floats]: each number times a row of the weight."""
  is_in_api = False

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""GRU: a gated recurrent unit over the vectors of a sample."""

import tensorflow.compat.v1 as tf

from hugectr.layers import initializers
from hugectr.layers import layer as layer_lib
from hugectr.layers.shapes import flat, need


class GRU(layer_lib.Layer):
  """A gated recurrent unit over a sequence of vectors side by side, from a state of zeros."""
  keys = {
      "gru_param": layer_lib.section({
              "num_output": layer_lib.integer("Width of the state.", minimum=1),
              "SeqLength": layer_lib.integer("Steps.", minimum=1),
              "vector_size": layer_lib.integer("Floats of a step.", minimum=1),
              "batchsize": layer_lib.integer(
                  "Of upstream's; without effect: the solver's counts.",
                  minimum=1),
              "weight_init": layer_lib.initializer(
                  "Initial weights, of the input and of the state.",
                  default="XavierNorm"),
              "bias_init": layer_lib.initializer("Initial biases.", default="Zero"),
              "gives": layer_lib.one_of(
                  "\"all\": the states of all steps side by side; \"last\": that of the last "
                  "step.",
                  ["all", "last"], default="all")
          }, required=["num_output", "SeqLength", "vector_size"])
  }
  required = ("gru_param",)
  arguments = {
      "gru_param.num_output": ("num_output", 1),
      "gru_param.batchsize": ("batchsize", 1),
      "gru_param.SeqLength": ("SeqLength", 1),
      "gru_param.vector_size": ("vector_size", 1),
      "gru_param.weight_init": ("weight_init_type", layer_lib.OMITTED),
      "gru_param.bias_init": ("bias_init_type", layer_lib.OMITTED)
  }

  @staticmethod
  def shape(shapes, params):
    shape, = shapes
    clause = params["gru_param"]
    steps, floats = clause["SeqLength"], clause["vector_size"]
    need(shape.dims in ((steps * floats,), (steps, floats)), "expected a bottom of SeqLength "
         "vectors of vector_size floats, [batch, %d] or [batch, %d, %d], got %s",
         steps * floats, steps, floats, shape)
    times = 1 if clause.get("gives") == "last" else steps
    return [flat(times * clause["num_output"], shape.rows)]

  @staticmethod
  def build(context, layer, bottom):
    """Returns the states of all steps side by side, `[rows, SeqLength * num_output]`.

    If `gives` is "last", returns the state of the last step, `[rows, num_output]`.

    Step t computes h(t) from the vector x(t) and the state h(t - 1); h(0) = 0. W is the
    weight of the input, R that of the state, b and c are their biases. Each has a part
    for reset, update and new state:

      r    = sigmoid(x W_r + b_r + h R_r + c_r)
      u    = sigmoid(x W_u + b_u + h R_u + c_u)
      n    = tanh(x W_n + b_n + r (h R_n + c_n))
      h(t) = (1 - u) n + u h

    These are cuDNN's GRU formulas. Parameters: W `[vector_size, 3 num_output]`, R
    `[num_output, 3 num_output]`, b and c `[3 num_output]`, with columns in that order.

    Cost: one product for the inputs of all steps, then one small product per step.

    Args:
      context: Context.
      layer: Layer.
      bottom: `[rows, SeqLength * vector_size]` or `[rows, SeqLength, vector_size]`.
    """
    clause = layer.params["gru_param"]
    steps, floats, width = clause["SeqLength"], clause["vector_size"], clause["num_output"]
    weight_init, bias_init = (clause.get("weight_init", "XavierNorm"),
                              clause.get("bias_init", "Zero"))
    weight = context.parameter(layer.name, "weight", [floats, 3 * width],
                               initializers.named(weight_init, floats, width))
    recurrent = context.parameter(layer.name, "recurrent_weight", [width, 3 * width],
                                  initializers.named(weight_init, width, width))
    # The fan-in of a bias is 0.
    bias, recurrent_bias = (
        context.parameter(layer.name, name, [3 * width],
                          initializers.named(bias_init, 0, width))
        for name in ("bias", "recurrent_bias"))
    inputs = context.add_bias(tf.matmul(tf.reshape(bottom, [-1, floats]), weight), bias)
    inputs = tf.unstack(tf.reshape(inputs, [-1, steps, 3 * width]), axis=1)
    state, states = tf.zeros([tf.shape(inputs[0])[0], width]), []
    for given in inputs:
      given_r, given_u, given_n = tf.split(given, 3, axis=1)
      held_r, held_u, held_n = tf.split(
          context.add_bias(tf.matmul(state, recurrent), recurrent_bias), 3, axis=1)
      update = tf.sigmoid(given_u + held_u)
      new = tf.tanh(given_n + tf.sigmoid(given_r + held_r) * held_n)
      state = (1. - update) * new + update * state
      states.append(state)
    if clause.get("gives") == "last":
      return state
    return tf.reshape(tf.stack(states, axis=1), [-1, steps * width])

  @classmethod
  def fill(cls, given):
    super().fill(given)
    given.put("gru_param.gives", "last")

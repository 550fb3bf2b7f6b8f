# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Elementwise layers."""

import functools

import tensorflow.compat.v1 as tf

from hugectr.layers import seeds


def relu(context, layer, bottom):
  """Returns max(x, 0)."""
  del context, layer
  return tf.nn.relu(bottom)


def elu(context, layer, bottom):
  """Returns x if it is positive, else alpha (exp(x) - 1)."""
  del context
  alpha = layer.params["elu_param"]["alpha"]
  # tf.nn.elu has alpha 1.
  return tf.nn.relu(bottom) + alpha * tf.math.expm1(tf.minimum(bottom, 0.))


def sigmoid(context, layer, bottom):
  """Returns 1 / (1 + exp(-x))."""
  del context, layer
  return tf.sigmoid(bottom)


def softmax(context, layer, bottom, mask=None):
  """Returns exp(x) / sum of exp(x) over the last axis; x is as in `masked` with a mask."""
  del context
  if mask is not None:
    bottom = masked(layer.params.get("factor", 1.) * bottom, mask)
  return tf.nn.softmax(bottom)


def masked(scores, mask):
  """Returns scores - 10000 (1 - mask)."""
  return scores - (1. - mask) * 10000.


def dropout(context, layer, bottom):
  """Returns x with a random part set to zero and the rest divided by 1 - rate."""
  rate = layer.params.get("rate", 0.5)
  if not context.is_training or rate == 0:
    return bottom
  return tf.nn.dropout(bottom, rate=rate, seed=seeds.of(layer.name, "dropout"))


def cast(context, layer, bottom):
  """Returns x, since layers cast their inputs."""
  del context, layer
  return bottom


def add(context, layer, *bottoms):
  """Returns the sum of the bottoms."""
  del context, layer
  return functools.reduce(tf.add, bottoms)


def sub(context, layer, first, second):
  """Returns the first bottom minus the second."""
  del context, layer
  return first - second


def product(context, layer, *bottoms):
  """Returns the product of the bottoms."""
  del context, layer
  return functools.reduce(tf.multiply, bottoms)

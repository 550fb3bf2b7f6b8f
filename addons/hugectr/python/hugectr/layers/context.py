# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inputs of a layer's ops in addition to its bottoms."""

import tensorflow.compat.v1 as tf

from hugectr.layers import layer


class Context(object):
  """One tower: the training graph, or the evaluation graph.

  Attributes:
    is_training: bool.
    dtype: dtype in which the current layer computes.
    updates: list of ops that a training step runs in addition to the optimizers':
      updates of running values.
  """

  def __init__(self, parameters, is_training, has_float16=False, on_gpu=False):
    """Creates no ops.

    Args:
      parameters: Parameters, shared by the towers.
      is_training: bool.
      has_float16: bool, whether types with `runs_in_float16` compute in float16. Parameters
        and their gradients are float32 in any case.
      on_gpu: bool, whether layers run on a GPU.
    """
    self._on_gpu = on_gpu
    self._parameters = parameters
    self._has_float16 = has_float16
    self.is_training = is_training
    self.dtype = tf.float32
    self.updates = []

  def begin(self, layer_type):
    """Sets `dtype` for a layer of a type."""
    is_half = self._has_float16 and layer_type in layer.OF_TYPE and (
        layer.OF_TYPE[layer_type].runs_in_float16)
    self.dtype = tf.float16 if is_half else tf.float32

  def parameter(self, layer, what, shape, initializer):
    """Returns a parameter in `dtype`; arguments as in Parameters.get."""
    return self.cast(self._parameters.get(layer, what, shape, initializer))

  def running_values(self, layer, width):
    """Returns the Running of a layer, like Parameters.running_values."""
    return self._parameters.running_values(layer, width)

  def add_bias(self, tensor, bias):
    """Returns a tensor `[rows, width]` plus a bias `[width]`.

    On a GPU the gradient of tf.nn.bias_add adds rows in any order; that of a sum has a
    fixed order. On a CPU both have fixed orders, which differ.
    """
    return tensor + bias if self._on_gpu else tf.nn.bias_add(tensor, bias)

  def cast(self, tensor):
    """Returns a tensor or a variable in `dtype`."""
    return tensor if tensor.dtype.base_dtype == self.dtype else tf.cast(tensor, self.dtype)

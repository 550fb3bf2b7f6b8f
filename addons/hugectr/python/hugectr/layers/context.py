# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a layer's ops need besides its bottoms."""

import tensorflow as tf

# Types of layers that float16 training runs in float16: those of which upstream has a
# float16 form, and those that only move numbers. All others are float32 there: sums over
# many numbers, norms, exponentials, and what upstream has in float32 alone.
FLOAT16_TYPES = frozenset((
    "Add", "Cast", "Concat", "DotProduct", "Dropout", "ElementwiseMultiply",
    "FusedInnerProduct", "Gather", "InnerProduct", "Interaction", "ReLU", "Reshape",
    "Scale", "Slice", "Sub"))


class Context(object):
  """One tower: the training graph, or the evaluation graph.

  Attributes:
    is_training: bool.
    dtype: what the layer that is being built computes in.
    updates: list of ops that a training step runs besides the optimizers': running
      values.
  """

  def __init__(self, parameters, is_training, has_float16=False, on_gpu=False):
    """Makes nothing.

    Args:
      parameters: Parameters, shared by the towers.
      is_training: bool.
      has_float16: bool, whether layers of FLOAT16_TYPES compute in float16. Parameters
        are float32 all the same, and so are their gradients.
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
    is_half = self._has_float16 and layer_type in FLOAT16_TYPES
    self.dtype = tf.float16 if is_half else tf.float32

  def parameter(self, layer, what, shape, initializer):
    """Returns a parameter in `dtype`; arguments as of Parameters.get."""
    return self.cast(self._parameters.get(layer, what, shape, initializer))

  def running_values(self, layer, width):
    """Returns the Running of a layer, as Parameters."""
    return self._parameters.running_values(layer, width)

  def add_bias(self, tensor, bias):
    """Returns a tensor `[rows, width]` plus a bias `[width]`.

    On a GPU the gradient of tf.nn.bias_add adds up rows in any order, that of a sum does
    not. On a CPU both have an order, not the same one.
    """
    return tensor + bias if self._on_gpu else tf.nn.bias_add(tensor, bias)

  def cast(self, tensor):
    """Returns a tensor or a variable in `dtype`."""
    return tensor if tensor.dtype.base_dtype == self.dtype else tf.cast(tensor, self.dtype)

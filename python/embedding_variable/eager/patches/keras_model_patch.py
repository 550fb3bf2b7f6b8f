# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: Keras models whose layers take ids or cannot be compiled by XLA.

Why: without an Input layer, a `Sequential` of Keras 3 converts its input to the type in
which its first layer computes, and float32 has not all ids. Keras 3 compiles with XLA on a
GPU whatever a user's layer does not forbid, also if it holds a table. Keras 2 does not look
at `supports_jit` of layers, so a model with tables fails in its first step.
"""

import inspect
import warnings

from embedding_variable import tf_names
from embedding_variable.integration import patching
from embedding_variable.variables import variable as variable_lib


def install():
  """Replaces methods of `Sequential` and `Model` of Keras 3, and of `Model` of Keras 2."""
  keras_3 = tf_names.keras_3()
  if keras_3 is not None:
    patching.wrap(keras_3.Sequential, "build", _build)
    trainer = tf_names.find("keras.src.backend.tensorflow.trainer").TensorFlowTrainer
    for name in ("make_train_function", "make_test_function", "make_predict_function"):
      patching.wrap(trainer, name, _without_xla, layer="_xla")
  for module in tf_names.keras_modules("engine.training"):
    if "jit_compile" in inspect.signature(module.Model.compile).parameters:
      patching.wrap(module.Model, "compile", _compile)


def _build(stock):

  def build(self, input_shape=None, *args, **kwargs):
    # pylint: disable=protected-access
    dtype = getattr(self._layers[0], "ids_dtype", None) if self._layers else None
    is_shape = isinstance(input_shape, (tuple, list)) and all(
        size is None or isinstance(size, int) for size in input_shape)
    if dtype is not None and is_shape:
      given = tf_names.keras_3().layers.InputLayer(
          batch_shape=tuple(input_shape), dtype=dtype)
      self._layers = [given] + self._layers
    return stock(self, input_shape, *args, **kwargs)

  return build


def _without_xla(stock):

  def make(self, *args, **kwargs):
    # Not in `compile`, because a layer may create its table when it is built.
    if self.jit_compile:
      for layer in self._flatten_layers():  # pylint: disable=protected-access
        for table in filter(variable_lib.is_embedding_variable, _values(layer)):
          self.jit_compile = False
          warnings.warn(
              "layer '%s' looks up embedding variable '%s', which XLA cannot compile: the "
              "model runs as with compile(jit_compile=False)" % (layer.name, table.name))
    return stock(self, *args, **kwargs)

  return make


def _values(layer):
  """Yields the values of a layer's attributes, and of its lists and dicts."""
  for value in list(vars(layer).values()):
    if isinstance(value, dict):
      yield from value.values()
    elif isinstance(value, (list, tuple)):
      yield from value
    else:
      yield value


def _compile(stock):
  signature = inspect.signature(stock)

  def compile(self, *args, **kwargs):  # pylint: disable=redefined-builtin
    if signature.bind(self, *args, **kwargs).arguments.get("jit_compile"):
      for layer in self._flatten_layers():  # pylint: disable=protected-access
        if not getattr(layer, "supports_jit", True):
          raise ValueError(
              "layer '%s': expected compile(jit_compile=False), got %r. XLA cannot "
              "compile the lookup in a table" % (
                  layer.name, signature.bind(self, *args, **kwargs).arguments["jit_compile"]))
    return stock(self, *args, **kwargs)

  return compile

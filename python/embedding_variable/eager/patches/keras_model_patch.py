# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: Keras models whose layers take ids or cannot be compiled by XLA.

Why: without an Input layer, a `Sequential` of Keras 3 converts its input to the type in
which its first layer computes, and float32 has not all ids. Keras 2 does not look at
`supports_jit` of layers, so a model with tables fails in its first step.
"""

import inspect

from embedding_variable import tf_names
from embedding_variable.integration import patching


def install():
  """Replaces `Sequential.build` of Keras 3 and `Model.compile` of Keras 2."""
  keras_3 = tf_names.keras_3()
  if keras_3 is not None:
    patching.wrap(keras_3.Sequential, "build", _build)
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

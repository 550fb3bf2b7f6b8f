# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: saving Keras models with embedding variables as HDF5 files raises an error.

Why: stock code writes the result of `session.run(variable)`, which for a table is its
shape. It does so without an error, and may replace a good file.
"""

from embedding_variable import tf_names
from embedding_variable.eager import eager_variable
from embedding_variable.integration import patching
from embedding_variable.variables import variable as ev

_HDF5 = ("hdf5", "h5", "keras")


def install():
  """Replaces the functions that run before a file is opened."""
  for module in tf_names.keras_modules("engine.network", "engine.training"):
    owner = getattr(module, patching.first_name(module, "Network", "Model"))
    patching.wrap(owner, "save_weights", _save_weights)
  for module in tf_names.keras_modules("saving.hdf5_format", "saving.legacy.hdf5_format"):
    patching.wrap(module, "save_model_to_hdf5", _save_model)
  for module in tf_names.keras_modules("saving.saving_lib"):
    patching.wrap(module, "save_model", _save_model_of_layers)


def _weights(model):
  """Returns the weights of a model, or of its built layers if it is not built yet."""
  try:
    return model.weights
  except ValueError:
    return [w for layer in getattr(model, "layers", ()) for w in _weights(layer)]


def _check(model, eager=True):
  """Raises if the model has tables that are in a graph or, if `eager`, eager."""
  for var in _weights(model):
    if ev.is_embedding_variable(var) and (
        eager or eager_variable.table_of(var) is None):
      raise NotImplementedError(
          "embedding variable '%s': Keras cannot save a table in an HDF5 file. Save the "
          "weights in TensorFlow's format, save_weights(path, save_format='tf') with a "
          "path that does not end in .h5, or all with tf.train.Saver or, in eager "
          "execution, tf.train.Checkpoint" % var.op.name)


def _save_weights(stock):

  def save_weights(self, filepath, *args, **kwargs):
    check(self, str(filepath), *args, **kwargs)
    return stock(self, filepath, *args, **kwargs)

  def check(model, path, unused_overwrite=True, save_format=None, *unused_args,
            **unused_kwargs):
    if save_format is not None:
      if save_format.lower().strip() in _HDF5:
        _check(model)
    elif path.endswith((".h5", ".keras", ".hdf5")):
      # Newer Keras 2 lets each layer write its own variables there.
      _check(model, eager=not (path.endswith(".weights.h5") and _layers_write()))

  return save_weights


def _layers_write():
  """Returns whether Keras's `save_weights` lets layers write a file that ends so."""
  return any(hasattr(module, "save_weights")
             for module in tf_names.keras_modules("saving.saving_api"))


def _save_model_of_layers(stock):
  """Wraps the function that lets each layer write its own variables."""

  def save_model(model, *args, **kwargs):
    _check(model, eager=False)
    return stock(model, *args, **kwargs)

  return save_model


def _save_model(stock):

  def save_model_to_hdf5(model, *args, **kwargs):
    _check(model)
    return stock(model, *args, **kwargs)

  return save_model_to_hdf5

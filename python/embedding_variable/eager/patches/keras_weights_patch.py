# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: weights of Keras models with embedding variables as arrays.

Why: callbacks call `get_weights` and `set_weights`, and stock code compares the shape of a
weight with that of its array, which for an eager table has a row per key. `TensorBoard`
converts weights to tensors. In a graph, `get_weights` returns the result of
`session.run(variable)`, which for a table is its shape.
"""

import numpy as np

from embedding_variable import tf_names
from embedding_variable.eager import eager_variable
from embedding_variable.integration import patching
from embedding_variable.tf_names import resource_variable_ops
from embedding_variable.variables import table_contents
from embedding_variable.variables import variable as ev


def install():
  """Replaces functions of layers, callbacks and the backend."""
  keras_3 = tf_names.keras_3()
  layers = [module.Layer for module in tf_names.keras_modules("engine.base_layer")]
  callbacks = tf_names.keras_modules("callbacks")
  if keras_3 is not None:
    layers.append(keras_3.layers.Layer)
    callbacks.append(keras_3.callbacks)
  for layer in layers:
    patching.wrap(layer, "set_weights", _set_weights)
  for module in callbacks:
    patching.wrap(module.TensorBoard, "_log_weights", _log_weights)
    patching.wrap(module.EarlyStopping, "on_train_begin", _on_train_begin)
  for module in tf_names.keras_modules("backend"):
    if hasattr(module, "batch_get_value"):  # not in Keras 3
      patching.wrap(module, "batch_get_value", _batch_get_value)


class _Weights(object):
  """Stands for a layer in stock code, with other weights."""

  def __init__(self, layer, weights):
    self._layer = layer
    self.weights = weights

  def __getattr__(self, name):
    return getattr(self._layer, name)


def _set_weights(stock):

  def set_weights(self, weights, *args, **kwargs):
    tables, others, count = {}, [], 0
    for var in self.weights:
      table = eager_variable.table_of(var)
      if table is None:
        others.append(var)
      else:
        tables[count] = table
      count += getattr(var, "num_tensors", 1)  # of a lookup layer in Keras 2
    if not tables or count != len(weights):
      return stock(self, weights, *args, **kwargs)
    contents = [(table, table_contents.contents_of(table, weights[i]))
                for i, table in tables.items()]
    stock(_Weights(self, others),
          [array for i, array in enumerate(weights) if i not in tables])
    for table, content in contents:
      table_contents.replace(table, content)

  return set_weights


def _log_weights(stock):

  def log_weights(self, *args, **kwargs):
    model = self.model
    if not any(map(_is_table, model.weights)):
      # Variables of Keras 3, which are converted to tensors.
      with table_contents.dense_reads():
        return stock(self, *args, **kwargs)
    # TensorFlow's ops read the variables of Keras 2 by their handles.
    self.model = _Model([_Weights(layer, [_dense(var) for var in layer.weights])
                         for layer in model.layers])
    try:
      return stock(self, *args, **kwargs)
    finally:
      self.model = model

  return log_weights


def _is_table(var):
  return isinstance(var, eager_variable.EagerEmbeddingVariable)


def _dense(var):
  """Returns a variable with the rows of a table, or `var` if it is none."""
  if not _is_table(var):
    return var
  return resource_variable_ops.ResourceVariable(
      np.asarray(var.numpy()), trainable=False, name=var.op.name)


class _Model(object):
  """Stands for a model whose layers are read."""

  def __init__(self, layers):
    self.layers = layers


def _refuse_graph_tables(variables):
  """Raises NotImplementedError if one of the variables is a table in a graph."""
  for var in variables:
    if ev.is_embedding_variable(var) and eager_variable.table_of(var) is None:
      raise NotImplementedError(
          "embedding variable '%s': in a graph, a table has no array for get_weights, "
          "which EarlyStopping(restore_best_weights=True) also calls. Save the best "
          "epoch by tf.train.Saver" % var.op.name)


def _on_train_begin(stock):
  """Refuses before the first epoch what would fail after it."""

  def on_train_begin(self, *args, **kwargs):
    if self.restore_best_weights and self.model.built:
      _refuse_graph_tables(self.model.weights)
    return stock(self, *args, **kwargs)

  return on_train_begin


def _batch_get_value(stock):

  def batch_get_value(tensors, *args, **kwargs):
    _refuse_graph_tables(tensors)
    return stock(tensors, *args, **kwargs)

  return batch_get_value

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: updates of eager tables by optimizers of Keras 2.11 and later.

Why: they keep a dense slot variable of each variable's shape, and update it by tensor
arithmetic. All updates go through `apply_gradients` (Keras 2) or `apply` (Keras 3) of
the base class, which get tables and other variables in one list, and slots are created
in `build`. These methods get the list without tables; eager/keras_update.py updates
those. Their slots are in files of Keras by the optimizer's methods for that.
"""

import inspect

from embedding_variable import tf_names
from embedding_variable.eager import eager_variable
from embedding_variable.eager import keras_update
from embedding_variable.eager import keras_weights
from embedding_variable.integration import patching
from embedding_variable.optimizers import keras_step_rules
from embedding_variable.variables import variable as ev


def install():
  """Replaces methods that build, update, save and load, of the optimizers."""
  for base in tf_names.keras_step_bases():
    if hasattr(base, "apply"):
      patching.wrap(base, "apply", _apply)
    else:
      patching.wrap(base, "apply_gradients", _apply_gradients)
    if hasattr(base, "save_own_variables"):  # not in Keras 2.11
      patching.wrap(base, "save_own_variables", _save_own_variables)
      patching.wrap(base, "load_own_variables", _load_own_variables)
  for cls in _classes():
    if "build" in vars(cls):
      patching.wrap(cls, "build", _build)


def _classes():
  """Returns the base classes and their subclasses in Keras."""
  bases = tuple(tf_names.keras_step_bases())
  found = list(bases)
  for package in tf_names.keras_step_optimizers():
    for cls in vars(package).values():
      if inspect.isclass(cls) and issubclass(cls, bases) and cls not in found:
        found.append(cls)
  return found


def _refuse_graph_tables(optimizer, variables):
  """Raises TypeError if one of the variables is a table in a graph."""
  for var in variables:
    if ev.is_embedding_variable(var) and eager_variable.table_of(var) is None:
      raise TypeError(
          "embedding variable '%s': the optimizer %s of %s cannot train a table in a "
          "graph. Use tf.compat.v1.train, or tf.compat.v1.keras.optimizers; from "
          "TensorFlow 2.16 on these need tf_keras and TF_USE_LEGACY_KERAS=1 in the "
          "environment before TensorFlow is imported" %
          (var.op.name, type(optimizer).__name__, type(optimizer).__module__))


def _build(stock):
  # Keras 2 and 3 name it differently.
  name = list(inspect.signature(stock).parameters)[1]

  def build(self, *args, **kwargs):
    if name in kwargs:
      args = (kwargs.pop(name),) + args
    variables = list(args[0])
    _refuse_graph_tables(self, variables)
    others = []
    for var in variables:
      table = eager_variable.table_of(var)
      if table is None:
        others.append(var)
      else:
        keras_update.check(self, var)
        keras_step_rules.remember(self, table)
    return stock(self, others, *args[1:], **kwargs)

  return build


def _apply_gradients(stock):
  """For Keras 2."""

  def apply_gradients(self, grads_and_vars, *args, **kwargs):
    pairs = list(grads_and_vars)
    _refuse_graph_tables(self, [var for _, var in pairs])
    tables, others = keras_update.split(pairs)
    if not tables:
      return stock(self, pairs, *args, **kwargs)
    return keras_update.step(self, tables, others,
                             lambda: stock(self, others, *args, **kwargs))

  return apply_gradients


def _apply(stock):
  """For Keras 3, whose `apply_gradients` calls it."""

  def apply(self, grads, trainable_variables=None, *args, **kwargs):
    if trainable_variables is None:
      return stock(self, grads, *args, **kwargs)
    pairs = list(zip(grads, trainable_variables))
    _refuse_graph_tables(self, [var for _, var in pairs])
    tables, others = keras_update.split(pairs)
    if not tables:
      return stock(self, grads, trainable_variables, *args, **kwargs)
    keras_update.step(self, tables, others, lambda: stock(
        self, [grad for grad, _ in others], [var for _, var in others], *args,
        **kwargs))

  return apply


def _save_own_variables(stock):

  def save_own_variables(self, store, *args, **kwargs):
    stock(self, store, *args, **kwargs)
    keras_weights.save_slots(self, store)

  return save_own_variables


def _load_own_variables(stock):

  def load_own_variables(self, store, *args, **kwargs):
    return stock(self, keras_weights.load_slots(self, store), *args, **kwargs)

  return load_own_variables

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Separates embedding variables from dense ones."""

import embedding_variable
from embedding_variable.eager import keras_variable
from embedding_variable.tf_names import variables as tf_variables


def parts(variable):
  """Returns the embedding variables that `variable` consists of.

  Args:
    variable: anything.

  Returns:
    A list: `variable` itself, or its parts if it is partitioned, or the table that a
      variable of Keras 3 holds; empty if it is not an embedding variable.
  """
  variable = keras_variable.held(variable)
  if embedding_variable.is_embedding_variable(variable):
    return [variable]
  if isinstance(variable, tf_variables.PartitionedVariable):
    shards = list(variable)
    if all(embedding_variable.is_embedding_variable(v) for v in shards):
      return shards
  return []


def filter_variables(vars):  # pylint: disable=redefined-builtin
  """Splits variables into embedding variables and all others.

  Example: gradients of dense variables alone go through an allreduce.

    sparse, dense = sok.filter_variables(tf.trainable_variables())

  Args:
    vars: iterable of variables; of a Keras 3 model, such as `model.trainable_variables`,
      too.

  Returns:
    Two lists, each in the order of `vars`: the embedding variables, the rest.
  """
  sok_vars, other_vars = [], []
  for variable in vars:
    (sok_vars if parts(variable) else other_vars).append(variable)
  return sok_vars, other_vars

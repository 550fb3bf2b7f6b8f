# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""An embedding variable and a dense variable with the same rows, for comparisons."""

import numpy as np
import tensorflow as tf

import deprecations
import embedding_variable as ev
from embedding_variable import tf_names

deprecations.silence()


def is_tensorflow_2():
  """Returns whether this is TensorFlow 2.x, under tf.compat.v1."""
  return tf_names.has_eager_tables()


def rows(num_rows, dim, seed=0):
  """Returns float32 `[num_rows, dim]`."""
  return np.random.RandomState(seed).randn(num_rows, dim).astype(np.float32)


def table(name, values, **kwargs):
  """Creates an embedding variable in which key k starts with row k of `values`."""
  num_rows, dim = values.shape
  option = ev.EmbeddingVariableOption(
      init_option=ev.InitializerOption(default_value_dim=num_rows))
  return tf.get_embedding_variable(
      name, dim, initializer=lambda shape, dtype: tf.constant(values),
      ev_option=option, **kwargs)


def dense(name, values, use_resource=True):
  """Creates a dense variable with the same rows."""
  return tf.get_variable(name, initializer=values, use_resource=use_resource)


def make(kind, name, values):
  """Creates a variable of a kind: "table", "resource" or "ref"."""
  if kind == "table":
    return table(name, values)
  return dense(name, values, use_resource=kind == "resource")


def read_all(variable, num_rows):
  """Returns the tensor of rows 0 to num_rows - 1."""
  return tf.nn.embedding_lookup(variable, tf.range(num_rows, dtype=tf.int64))


def session(threads=0):
  """Returns a session that logs nothing about its devices."""
  return tf.Session(
      config=tf.ConfigProto(
          intra_op_parallelism_threads=threads,
          inter_op_parallelism_threads=threads))

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Objects of stock TensorFlow for the cases of stock_calls.py."""

import importlib

import numpy as np
import tensorflow as tf

ROWS = np.arange(24, dtype=np.float32).reshape(8, 3) / 8 + .5
IS_1 = tf.__version__.startswith("1.")

tf1 = tf.compat.v1


def module(name):
  try:
    return importlib.import_module(name)
  except ImportError:
    return None


def kerases():
  """Returns the installed Keras packages; the first is `tf.keras`."""
  found = [tf.keras, tf1.keras] + [module(n) for n in ("tf_keras", "keras")]
  return [k for k in found if k is not None and hasattr(k, "optimizers")]


def run(build, *inits):
  """Returns the values of what `build` returns in a new graph."""
  with tf.Graph().as_default(), tf1.Session() as session:
    fetches = build()
    session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
    for op in inits:
      session.run(op)
    return session.run(fetches)


def sgd(keras):
  """Returns an optimizer for graphs, if the Keras has one."""
  legacy = getattr(keras.optimizers, "legacy", keras.optimizers)
  try:
    return legacy.SGD(.1)
  except ImportError:
    return keras.optimizers.SGD(.1)


def outcome(function, *args, **kwargs):
  """Returns the result of a call, or the name of what it raises."""
  try:
    return function(*args, **kwargs)
  except Exception as e:  # pylint: disable=broad-except
    return tf.constant(type(e).__name__)


def ids():
  return tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([1, 4, 2], tf.int64), [4, 2])


def weights():
  return tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [1., 2., 3.], [4, 2])


def variable(name="v"):
  return tf1.get_variable(name, initializer=ROWS)

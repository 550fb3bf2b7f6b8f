# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A small model with two tables, trained in a graph, in eager execution or in a function."""

import numpy as np
import tensorflow as tf

import sparse_operation_kit as sok

MODES = ("eager", "function")

_IDS = [[0, 0], [0, 1], [2, 0]], [7, -3, 2 ** 62], [3, 2]


def ids(values=None):
  """Returns a SparseTensor of three samples; the second is empty."""
  indices, default, shape = _IDS
  return tf.SparseTensor(indices, tf.constant(values or default, tf.int64), shape)


def loss_of(users, items, weight, given):
  """Returns a loss that is not linear in the rows."""
  u, i = sok.lookup_sparse([users, items], [given, given], combiners=["sum", "mean"])
  return tf.reduce_mean(tf.square(tf.matmul(u, weight)[:, 0]) * tf.reduce_sum(i, 1))


def rows(seed, dim):
  """Returns an initializer of rows that are the same in every mode."""
  table = np.random.RandomState(seed).uniform(.5, 1., [16, dim]).astype(np.float32)

  def initializer(shape, dtype=tf.float32, **unused_kwargs):
    return tf.constant(np.resize(table, shape), dtype)

  return initializer


class Model(tf.Module):
  """Tables, a dense variable and an optimizer."""

  def __init__(self, optimizer, ev_option=None):
    super(Model, self).__init__()
    self.users = tf.compat.v1.get_embedding_variable(
        "users", 4, initializer=rows(0, 4), ev_option=ev_option)
    self.items = tf.compat.v1.get_embedding_variable(
        "items", 3, initializer=rows(1, 3), ev_option=ev_option)
    self.weight = tf.Variable([[.5], [.25], [1.], [2.]])
    self.optimizer = optimizer
    self.function = tf.function(self.step)

  def variables_of_model(self):
    return [self.users, self.items, self.weight]

  def step(self, given=None):
    """Trains one step; returns the loss before it."""
    with tf.GradientTape() as tape:
      loss = loss_of(self.users, self.items, self.weight, ids() if given is None else given)
    variables = self.variables_of_model()
    self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss

  def train(self, mode, steps=3):
    """Returns the losses of some steps."""
    run = self.step if mode == "eager" else self.function
    return [float(run()) for _ in range(steps)]


def losses_in_a_graph(make_optimizer, steps=3):
  """Returns the losses of the same model in a `tf.compat.v1.Session`."""
  v1 = tf.compat.v1
  with tf.Graph().as_default(), v1.Session() as session:
    users = v1.get_embedding_variable("users", 4, initializer=rows(0, 4))
    items = v1.get_embedding_variable("items", 3, initializer=rows(1, 3))
    weight = v1.get_variable("weight", initializer=[[.5], [.25], [1.], [2.]],
                             use_resource=True)
    loss = loss_of(users, items, weight, ids())
    optimizer = make_optimizer()
    variables = [users, items, weight]
    gradients = tf.gradients(loss, variables)
    # Reads the loss before the update.
    with tf.control_dependencies([loss]):
      train = optimizer.apply_gradients(zip(gradients, variables))
    session.run(v1.global_variables_initializer())
    if hasattr(optimizer, "variables"):
      own = optimizer.variables
      session.run([v.initializer for v in (own() if callable(own) else own)])
    return [float(session.run([loss, train])[0]) for _ in range(steps)]

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A small model that the tests of checkpoints save and restore."""

import os

import numpy as np
import tensorflow as tf

import embedding_variable as ev

ROWS, DIM = 50, 3


class Model(object):
  """A graph that trains an embedding variable, and its session."""

  def __init__(self, optimizer=tf.train.AdamOptimizer, parts=None, dim=DIM,
               train=True, key_dtype=tf.int64, name="v", saver=None,
               record=()):
    for flag in record:
      os.environ[flag] = "1"
    self.graph = tf.Graph()
    with self.graph.as_default():
      tf.set_random_seed(3)
      self.step = tf.train.get_or_create_global_step()
      self.variable = tf.get_embedding_variable(
          name, dim, key_dtype=key_dtype,
          initializer=tf.random_normal_initializer(seed=7),
          partitioner=None if parts is None else
          tf.fixed_size_partitioner(parts))
      self.dense = tf.get_variable("dense", [dim],
                                   initializer=tf.ones_initializer())
      self.ids = tf.placeholder(key_dtype, [None])
      rows = tf.nn.embedding_lookup(self.variable, self.ids)
      self.rows = rows
      self.loss = tf.reduce_sum(tf.square(rows * self.dense - 1.0))
      if train:
        self.optimizer = optimizer(0.05)
        self.train = self.optimizer.minimize(self.loss, global_step=self.step)
      self.export = [p.export() for p in self.parts()]
      self.saver = (saver or tf.train.Saver)()
      self.init = tf.global_variables_initializer()
      self.graph.finalize()
    for flag in record:
      del os.environ[flag]
    self.session = tf.Session(graph=self.graph)

  def parts(self):
    if ev.is_embedding_variable(self.variable):
      return [self.variable]
    return list(self.variable)

  def start(self):
    self.session.run(self.init)
    return self

  def run(self, steps, seed, low=-ROWS):
    """Trains; returns the losses."""
    random = np.random.RandomState(seed)
    return [
        self.session.run([self.loss, self.train],
                         {self.ids: random.randint(low, ROWS, size=20)})[0]
        for _ in range(steps)
    ]

  def contents(self):
    """Returns key -> row of all parts."""
    found = {}
    for keys, values, _, _ in self.session.run(self.export):
      found.update(zip(keys.tolist(), values.tolist()))
    return found

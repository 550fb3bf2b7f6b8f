# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The soak test's model, with three kinds of tables, and its session."""

import os

import numpy as np
import tensorflow as tf

import embedding_variable as ev
from embedding_variable.variables import config_pb2

import soak_oracle

# Two tables are checked by the oracle, and one by a model on the CPU.
EXACT = ("exact_0", "exact_1")
TWIN = "twin"


class Model(object):
  """Lookup, update, evictions, exports and a saver for increments.

  Attributes:
    session: the session.
    saver: `tf.train.Saver` that can save increments.
  """

  def __init__(self, device, storage, dim, samples, hotness, rows_on_gpu=0):
    """Builds the graph and starts the session.

    Args:
      device: string, of tables, lookup and update.
      storage: "dram", "hbm" or "hbm_dram".
      dim: int, floats per row.
      samples, hotness: ints, the shape of a step's ids of each table.
      rows_on_gpu: int, number of rows of an hbm_dram table that fit on the GPU.
    """
    self._hotness = hotness
    with tf.Graph().as_default() as graph:
      with tf.device("/cpu:0"):
        self._step = tf.train.get_or_create_global_step()
        self._ids = [tf.placeholder(tf.int64, [samples * hotness])
                     for _ in EXACT + (TWIN,)]
        splits = tf.constant(np.arange(samples + 1) * hotness, tf.int64)
        # TensorFlow has no GPU kernel for this conversion.
        features = [
            tf.RaggedTensor.from_row_splits(x, splits, validate=False).to_sparse()
            for x in self._ids
        ]
      with tf.device(device):
        tables = [self._table(name, storage, dim, rows_on_gpu)
                  for name in EXACT + (TWIN,)]
        self._outputs = tf.nn.group_embedding_lookup_sparse(
            tables, features, ["sum", "sum", "mean"])
        weights = tf.constant(soak_oracle.weights(dim))
        losses = [tf.reduce_sum(x * weights) for x in self._outputs]
        exact = tf.train.GradientDescentOptimizer(soak_oracle.RATE).minimize(
            losses[0] + losses[1], var_list=tables[:2])
        with tf.control_dependencies([exact]):
          self._train = tf.train.AdamOptimizer(.01).minimize(
              losses[2], var_list=tables[2:], global_step=self._step)
      self._exports = [t.export() for t in tables]
      self._live = tf.placeholder(tf.int64, [])
      self._stale = [t.evict(steps_to_live=STEPS_TO_LIVE, step=self._live)
                     for t in tables]
      self._weak = [t.evict(l2_weight_threshold=WEAK) for t in tables]
      self._stats = [t.tier_stats() for t in tables]
      self._sizes = [t.total_count()[0] for t in tables]
      self.saver = tf.train.Saver(max_to_keep=2, incremental_save_restore=True)
      init = tf.global_variables_initializer()
    config = tf.ConfigProto(allow_soft_placement=_SOFT)
    config.gpu_options.allow_growth = True
    self.session = tf.Session(graph=graph, config=config)
    self.session.run(init)

  def _table(self, name, storage, dim, rows_on_gpu):
    size = [rows_on_gpu * 4 * dim] if storage == "hbm_dram" else None
    option = ev.EmbeddingVariableOption(
        storage_option=ev.StorageOption(
            storage_type=config_pb2.StorageType.Value(storage.upper()),
            storage_size=size),
        filter_option=ev.CounterFilter(filter_freq=2) if name == TWIN else None)
    os.environ["TF_RECORD_VERSION"] = "1"
    try:
      return tf.get_embedding_variable(
          name, dim, initializer=soak_oracle.initial_row(dim), ev_option=option)
    finally:
      del os.environ["TF_RECORD_VERSION"]

  def train(self, ids):
    """Trains one step; returns the lookups' results, a list of float32 `[samples,
    dim]`."""
    return self.session.run([self._outputs, self._train], dict(zip(self._ids, ids)))[0]

  def step(self):
    """Returns the global step."""
    return int(self.session.run(self._step))

  def evict_stale(self, step):
    """Returns the number of evicted rows, by table."""
    return [int(n) for n in self.session.run(self._stale, {self._live: step})]

  def evict_weak(self):
    """Returns the number of evicted rows, by table."""
    return [int(n) for n in self.session.run(self._weak)]

  def tables(self):
    """Returns a list of (keys int64 [N] in ascending order, rows float32 [N, dim])."""
    tables = []
    for export in self.session.run(self._exports):
      order = np.argsort(export[0])
      tables.append((export[0][order], export[1][order]))
    return tables

  def sizes(self):
    """Returns the number of rows of each table."""
    return [int(n) for n in self.session.run(self._sizes)]


# Rows without an update for more steps than this are evicted.
STEPS_TO_LIVE = 60

# Rows with 0.5 * sum(w^2) below this are evicted. A new row of dim 16 has 3.75.
WEAK = 2.0

# Whether stock ops without a kernel for the device may run on the CPU: only with the
# engine's test device.
_SOFT = bool(os.environ.get("EV_TEST_LIBRARY"))

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The model of the processes that the tests kill."""

import hashlib
import os

import numpy as np
import tensorflow as tf

import embedding_variable as ev
from embedding_variable.ops import checkpoint_ops
from embedding_variable.variables import config_pb2


class Model(object):
  """A graph of two tables, built once; every process has its own session."""

  def __init__(self, sharded, max_to_keep=2, storage_path=None):
    """Builds the graph.

    Args:
      sharded, max_to_keep: arguments of the Saver.
      storage_path: string, folder in which table `a` stores some of its rows on an SSD; or
        None.
    """
    self.graph = tf.Graph()
    os.environ["TF_RECORD_FREQ"] = os.environ["TF_RECORD_VERSION"] = "1"
    with self.graph.as_default():
      self.step = tf.train.get_or_create_global_step()
      option = ev.EmbeddingVariableOption(filter_option=ev.CounterFilter(2))
      tables = [
          tf.get_embedding_variable("a", 4, ev_option=_on_ssd(storage_path)),
          tf.get_embedding_variable("b", 8, ev_option=option)
      ]
      dense = tf.get_variable("dense", [200])
      self.ids = tf.placeholder(tf.int64, [None])
      loss = tf.reduce_sum(tf.square(dense)) + sum(
          tf.reduce_sum(tf.square(tf.nn.embedding_lookup(t, self.ids) - 1.0))
          for t in tables)
      self.train = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=self.step)
      self.erase = [t.erase(self.ids) for t in tables]
      self.state = [
          checkpoint_ops.export_table(t.handle, list(t.slot_columns)) for t in tables
      ] + [v for v in tf.global_variables() if not ev.is_embedding_variable(v)]
      self.saver = tf.train.Saver(max_to_keep=max_to_keep, sharded=sharded,
                                  incremental_save_restore=True)
      self.init = tf.global_variables_initializer()
      self.graph.finalize()

  def digest(self, session):
    """Returns a string that is equal only for equal states."""
    sha = hashlib.sha256()

    def add(value):
      if isinstance(value, (list, tuple)):
        for v in value:
          add(v)
      else:
        sha.update(np.asarray(value).tobytes())

    add(session.run(self.state))
    return sha.hexdigest()[:16]


def _on_ssd(path):
  if path is None:
    return None
  return ev.EmbeddingVariableOption(storage_option=ev.StorageOption(
      storage_type=config_pb2.StorageType.DRAM_SSDHASH, storage_path=path,
      storage_size=[16 << 10]))

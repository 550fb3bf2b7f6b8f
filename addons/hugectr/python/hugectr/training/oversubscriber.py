# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables larger than memory: upstream's calls for them."""

import os

import numpy as np
import tensorflow.compat.v1 as tf

from hugectr.training import tables as embedding_tables


class ModelOversubscriber(object):
  """Loads rows into memory before training on data that needs them.

  Upstream keeps the rows of one keyset in memory, and training fails for other keys. In
  this package memory holds the most used rows, any key may occur at any time, and rows
  and their optimizer states are always kept. So `update` is only a hint: training
  without it gives the same numbers.
  """

  def __init__(self, layers, session, has_i64_keys, beyond):
    """Creates no op yet.

    Args:
      layers: list of tables.Layer.
      session: `tf.Session`.
      has_i64_keys: bool, whether keysets have keys of 8 bytes.
      beyond: as in tables.beyond_of; layers that have none are left out.
    """
    found = [(layer, embedding_tables.beyond_of(beyond, layer.embedding))
             for layer in layers]
    self._layers = [(layer, b) for layer, b in found if b is not None]
    self._session = session
    self._key_type = np.dtype("<i8" if has_i64_keys else "<u4")
    self._ops = None

  def _make_ops(self):
    if self._ops is None:
      with self._session.graph.as_default():
        self._ops = []
        for layer, beyond in self._layers:
          rows = embedding_tables.memory_rows(layer.embedding, beyond.blocks)
          for k, table in enumerate(layer.tables):
            keys = tf.placeholder(tf.int64, [None])
            self._ops.append((keys, table.prefetch(keys), rows and rows[k]))
        self._stats = [t.tier_stats() for layer, _ in self._layers for t in layer.tables]
    return self._ops

  def _read(self, path):
    size = os.path.getsize(path)
    if size % self._key_type.itemsize:
      raise ValueError("keyset %s: %d bytes are not a whole number of keys of %d" %
                       (path, size, self._key_type.itemsize))
    return np.fromfile(path, self._key_type).astype(np.int64)

  def update(self, keyset_file):
    """Loads rows of keysets into memory, as many as fit.

    Args:
      keyset_file: path of a file of keys, 4 bytes each (8 with i64_input_key), or a
        list of such paths.

    Raises:
      ValueError: the size of a file is not a multiple of the key size.
      OSError: a file cannot be read.
    """
    paths = [keyset_file] if isinstance(keyset_file, str) else list(keyset_file)
    keys = np.unique(np.concatenate([self._read(p) for p in paths] or
                                    [np.zeros([0], np.int64)]))
    for place, prefetch, rows in self._make_ops():
      self._session.run(prefetch, {place: keys[:rows]})

  def rows(self):
    """Returns (rows in memory, rows in files), of all embeddings on this rank.

    With "HBM_DRAM": (rows in GPU memory, rows in host memory).
    """
    self._make_ops()
    if not self._stats:
      return 0, 0
    stats = np.sum(self._session.run(self._stats), axis=0)
    return int(stats[0]), int(stats[1])

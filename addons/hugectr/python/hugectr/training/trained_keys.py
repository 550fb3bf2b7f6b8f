# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The keys whose rows training has changed."""

import numpy as np

from hugectr.training import tables as embedding_tables

# Keys of a table that are collected before repeated ones are removed.
_MOST = 1 << 22


class _Keys(object):
  """The distinct keys of one table."""

  def __init__(self):
    self._parts, self._count = [], 0

  def add(self, keys):
    # Copied, since a reader's arrays return to its pool.
    self._parts.append(np.array(keys, np.int64))
    self._count += len(keys)
    if self._count > _MOST:
      self._parts = [self.distinct()]
      # Counts half of them, so that the next time is not the next batch.
      self._count = min(_MOST // 2, len(self._parts[0]))

  def distinct(self):
    """Returns the keys in ascending order."""
    return np.unique(np.concatenate(self._parts or [np.zeros([0], np.int64)]))


class TrainedKeys(object):
  """Collects the keys of training batches, table by table.

  Cost: a copy of a batch's keys, and a sort of every 4 million of a table.

  Args:
    layers: list of tables.Layer, one per input of a batch.
  """

  def __init__(self, layers):
    self._layers = layers
    self.clear()

  def clear(self):
    """Forgets all keys."""
    self._keys = {layer.embedding.name: [_Keys() for _ in layer.tables]
                  for layer in self._layers if layer.embedding.table is None}

  def add(self, inputs, frozen):
    """Adds a batch.

    Args:
      inputs: list of data Keys, one per layer.
      frozen: set of names of embeddings that the batch did not train.
    """
    for layer, (keys, splits) in zip(self._layers, inputs):
      owner = layer.embedding.table or layer.embedding.name
      if owner in frozen:
        continue
      tables = self._keys[owner]
      if not embedding_tables.is_slot_major(layer.embedding):
        tables[0].add(keys)
        continue
      ends = np.cumsum(splits[:, -1])
      for table, part in zip(tables, np.split(keys, ends[:-1])):
        table.add(part)

  def distinct(self):
    """Returns a list of int64 arrays in ascending order for each layer with tables."""
    return [[table.distinct() for table in self._keys[layer.embedding.name]]
            for layer in self._layers if layer.embedding.table is None]

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The embedding layers: their tables, the keys that are fed, the lookup."""

import collections
import ctypes
import os
import re

import tensorflow as tf
from tensorflow.core.framework.embedding import config_pb2

import sparse_operation_kit as sok

from hugectr.layers import seeds

# Initial values of rows whose slot's size is not known.
_LIMIT = 0.05

# embedding: config's Embedding. tables: list of embedding variables, one for all slots, or
# one per slot. keys, splits: int64 placeholders, as data's Keys.
Layer = collections.namedtuple("Layer", ["embedding", "tables", "keys", "splits"])


def is_slot_major(embedding):
  """Returns whether a layer has a table per slot, and takes keys slot by slot."""
  return embedding.bottom.is_localized


def memory_rows(embedding):
  """Returns the rows of each of a layer's tables that are in memory with an SSD below.

  Together they are max_vocabulary_size_per_gpu, by the sizes of the slots if those are
  known. None: it is not given.
  """
  rows = embedding.rows_per_device
  if rows is None:
    return None
  if not is_slot_major(embedding):
    return [rows]
  sizes = embedding.slot_sizes or [1] * embedding.bottom.slot_num
  return [max(1, rows * size // max(1, sum(sizes))) for size in sizes]


def _storage(folder, name, rows, floats):
  """Returns the option of a table whose rows are partly on an SSD."""
  size = None if rows is None else [max(1, rows * floats)]
  return tf.EmbeddingVariableOption(storage_option=tf.StorageOption(
      storage_type=config_pb2.StorageType.DRAM_SSDHASH,
      storage_path=os.path.join(folder, name), storage_size=size))


def _in_gpu_memory_if_there_is_any():
  """Returns the option of a table whose rows are in a GPU's memory, or None."""
  try:
    ctypes.CDLL("libcuda.so.1")
  except OSError:
    # Asked to look for a GPU, each table would say that there is none.
    return None
  return tf.EmbeddingVariableOption(storage_option=tf.StorageOption(storage_type="auto"))


class Maker(object):
  """Makes the tables of a model.

  Args:
    ranks: int.
    ssd_folder: string: rows that memory does not hold are in files there; None: all rows
      are in memory.
  """

  def __init__(self, ranks, ssd_folder=None):
    self._ranks = ranks
    self._ssd_folder = ssd_folder
    self._names = set()

  def _table(self, name, embedding, slot, states):
    """Returns the table of a slot, or of all slots (slot None)."""
    limit, target = _LIMIT, -1
    if slot is not None:
      # Slot modulo ranks, of all of the data's slots.
      target = (embedding.bottom.first_slot + slot) % self._ranks
      if embedding.slot_sizes and embedding.slot_sizes[slot]:
        limit = embedding.slot_sizes[slot] ** -0.5
    initializer = tf.compat.v1.random_uniform_initializer(
        -limit, limit, seed=seeds.of(name))
    option = _in_gpu_memory_if_there_is_any()
    if self._ssd_folder is not None:
      rows = memory_rows(embedding)
      # 20 bytes of a row in memory are not its numbers.
      option = _storage(self._ssd_folder, name, rows and rows[slot or 0],
                        4 * embedding.vec_size * (1 + states) + 20)
    table = tf.get_embedding_variable(
        name, embedding_dim=embedding.vec_size, key_dtype=tf.int64,
        initializer=initializer, ev_option=option)
    table.target_gpu = target
    return table

  def make(self, embedding, states):
    """Returns the Layer of an embedding, with its tables and placeholders.

    Args:
      embedding: config's Embedding.
      states: int, what its optimizer keeps of each number of a row.
    """
    # A variable's name allows few characters.
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", embedding.name).lstrip("_-") or "embedding"
    while name in self._names:
      name += "_"
    self._names.add(name)
    if is_slot_major(embedding):
      tables = [self._table("%s/slot_%d" % (name, s), embedding, s, states)
                for s in range(embedding.bottom.slot_num)]
      splits_shape = [embedding.bottom.slot_num, None]
    else:
      tables, splits_shape = [self._table(name, embedding, None, states)], [None]
    return Layer(
        embedding, tables,
        tf.compat.v1.placeholder(tf.int64, [None], "%s/keys" % name),
        tf.compat.v1.placeholder(tf.int64, splits_shape, "%s/splits" % name))


def _ragged(values, splits):
  return tf.RaggedTensor.from_row_splits(values, splits, validate=False)


def lookup(layers, tensors):
  """Adds each layer's top `[batch, slots, vec_size]` to tensors, by one lookup.

  Args:
    layers: list of Layer.
    tensors: dict, tensors by name.
  """
  tables, ids, combiners = [], [], []
  for layer in layers:
    if is_slot_major(layer.embedding):
      splits = tf.unstack(layer.splits)
      keys = tf.split(layer.keys, layer.splits[:, -1], num=len(layer.tables))
      ids += [_ragged(k, s) for k, s in zip(keys, splits)]
    else:
      ids.append(_ragged(layer.keys, layer.splits))
    tables += layer.tables
    combiners += [layer.embedding.combiner] * len(layer.tables)
  pooled = sok.lookup_sparse(tables, ids, combiners=combiners)
  for layer in layers:
    mine, pooled = pooled[:len(layer.tables)], pooled[len(layer.tables):]
    slots, floats = layer.embedding.bottom.slot_num, layer.embedding.vec_size
    top = tf.stack(mine, axis=1) if is_slot_major(layer.embedding) else mine[0]
    tensors[layer.embedding.top] = tf.reshape(top, [-1, slots, floats])

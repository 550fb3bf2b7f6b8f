# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The embedding layers: their tables, the keys fed to them, and the lookup."""

import collections
import contextlib
import ctypes
import os
import re

import tensorflow.compat.v1 as tf

import sparse_operation_kit as sok
# A name of DeepRec's, which that package adds.
from tensorflow.core.framework.embedding import config_pb2

from hugectr.config import model as models
from hugectr.layers import seeds
from hugectr.training import concat

# Limit of initial values if the size of the slot is unknown.
_LIMIT = 0.05

# embedding: the config's Embedding. tables: list of embedding variables, one for all
# slots or one per slot. keys, splits: int64 placeholders for a data Keys.
Layer = collections.namedtuple("Layer", ["embedding", "tables", "keys", "splits"])


def is_slot_major(embedding):
  """Returns whether a layer has a table per slot, and slot-major keys."""
  return embedding.bottom.is_localized


def owner(embedding, slot, ranks):
  """Returns the rank that holds a table's rows; -1: they are spread by key modulo ranks.

  Args:
    embedding: the config's Embedding.
    slot: int, the slot of a table per slot; None: a table for all slots.
    ranks: int.
  """
  if embedding.target is not None:
    return embedding.target if embedding.target < ranks else -1
  # Slot modulo ranks, counting all of the data's slots.
  return -1 if slot is None else (embedding.bottom.first_slot + slot) % ranks


def memory_rows(embedding, blocks=1):
  """Returns how many rows of each of a layer's tables the faster of two memories holds.

  The sum is max_vocabulary_size_per_gpu times blocks, divided by the sizes of the slots
  if those are known. None if it is not given.
  """
  if embedding.rows_per_device is None:
    return None
  rows = embedding.rows_per_device * blocks
  if not is_slot_major(embedding):
    return [rows]
  sizes = embedding.slot_sizes or [1] * embedding.bottom.slot_num
  return [max(1, rows * size // max(1, sum(sizes))) for size in sizes]


# Options of tables in two memories. storage: "HBM_DRAM", GPU memory and host memory, or
# "DRAM_SSDHASH", host memory and files in folder. blocks: as in memory_rows.
BeyondMemory = collections.namedtuple("BeyondMemory", ["storage", "folder", "blocks"])
BeyondMemory.__new__.__defaults__ = (1,)


def beyond_of(beyond, embedding):
  """Returns the BeyondMemory of an embedding, or None.

  Args:
    beyond: BeyondMemory of all embeddings; or a dict from names of embeddings; or None.
    embedding: the config's Embedding.
  """
  return beyond.get(embedding.name) if isinstance(beyond, dict) else beyond


# Smallest number of rows per table in GPU memory.
_LEAST_IN_GPU_MEMORY = 64


def _storage(beyond, name, rows, floats):
  """Returns the option of a table in two memories.

  Args:
    beyond: BeyondMemory.
    name: string, name of the table.
    rows: int, rows in the faster memory; None: 1 GiB of them.
    floats: int, floats of a row and its states.
  """
  size, path = None, None
  if beyond.storage == "HBM_DRAM":
    if rows is not None:
      size = [4 * floats * max(_LEAST_IN_GPU_MEMORY, rows)]
  else:
    path = os.path.join(beyond.folder, name)
    if rows is not None:
      # 20 bytes per row in memory are metadata.
      size = [max(1, rows * (4 * floats + 20))]
  return tf.EmbeddingVariableOption(storage_option=tf.StorageOption(
      storage_type=config_pb2.StorageType.Value(beyond.storage), storage_path=path,
      storage_size=size))


def _in_gpu_memory_if_any():
  """Returns the option of a table in GPU memory, or None without a GPU."""
  try:
    ctypes.CDLL("libcuda.so.1")
  except OSError:
    # None, since otherwise each table would log that there is no GPU.
    return None
  return tf.EmbeddingVariableOption(storage_option=tf.StorageOption(storage_type="auto"))


def _on(device):
  """Returns a context that places ops on a device; None: TensorFlow's choice."""
  return contextlib.nullcontext() if device is None else tf.device(device)


class Maker(object):
  """Creates the tables of a model, and looks them up.

  Args:
    ranks: int.
    beyond: as in beyond_of; None: all rows are in one memory.
    gpu: string, the TensorFlow GPU of the dense layers. Pooled rows and their gradients
      stay in its memory; keys are in host memory. None: there is no GPU.
    dtype: dtype of the pooled rows and of their gradients.
  """

  def __init__(self, ranks, beyond=None, gpu=None, dtype=tf.float32):
    self._ranks = ranks
    self._dtype = dtype
    self._beyond = beyond
    self._gpu = gpu
    self._names = set()

  def _table(self, name, embedding, slot, states):
    """Returns the table of a slot, or of all slots (slot None)."""
    limit = _LIMIT
    if slot is not None and embedding.slot_sizes and embedding.slot_sizes[slot]:
      limit = embedding.slot_sizes[slot] ** -0.5
    initializer = tf.random_uniform_initializer(
        -limit, limit, seed=seeds.of(name))
    beyond = beyond_of(self._beyond, embedding)
    if beyond is None:
      option = _in_gpu_memory_if_any()
    else:
      rows = memory_rows(embedding, beyond.blocks)
      option = _storage(beyond, name, rows and rows[slot or 0],
                        embedding.vec_size * (1 + states))
    with _on(self._gpu):
      table = tf.get_embedding_variable(
          name, embedding_dim=embedding.vec_size, key_dtype=tf.int64,
          initializer=initializer, ev_option=option)
    table.target_gpu = owner(embedding, slot, self._ranks)
    return table

  def make(self, embedding, states, owner=None):
    """Creates an embedding's tables and placeholders; returns its Layer.

    Args:
      embedding: the config's Embedding.
      states: int, optimizer states per number of a row.
      owner: Layer whose tables it uses; None: it gets its own.
    """
    # Variable names allow few characters.
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", embedding.name).lstrip("_-") or "embedding"
    while name in self._names:
      name += "_"
    self._names.add(name)
    if is_slot_major(embedding):
      splits_shape = [embedding.bottom.slot_num, None]
    else:
      splits_shape = [None]
    if owner is not None:
      tables = owner.tables
    elif is_slot_major(embedding):
      tables = [self._table("%s/slot_%d" % (name, s), embedding, s, states)
                for s in range(embedding.bottom.slot_num)]
    else:
      tables = [self._table(name, embedding, None, states)]
    with self._beside_keys():
      return Layer(
          embedding, tables,
          tf.placeholder(tf.int64, [None], "%s/keys" % name),
          tf.placeholder(tf.int64, splits_shape, "%s/splits" % name))

  def _beside_keys(self):
    return _on("/cpu:0" if self._gpu else None)

  def lookup(self, layers, tensors):
    """Adds each layer's top `[batch, slots, floats]` to `tensors`, by one lookup.

    The keys of layers that use one table are joined, so that each table is looked up and
    updated once.

    Args:
      layers: list of Layer.
      tensors: dict of tensors by name.
    """
    groups = collections.OrderedDict()  # layers that use one table
    for layer in layers:
      groups.setdefault(layer.embedding.table or layer.embedding.name, []).append(layer)
    tables, ids, combiners, counts = [], [], [], []
    for group in groups.values():
      with self._beside_keys():
        each = [_ids(layer) for layer in group]
        ids += _joined(each)
        counts.append([tf.shape(i[0].row_splits)[0] - 1 for i in each])
      tables += group[0].tables
      combiners += [_combiner(group)] * len(group[0].tables)
    with _on(self._gpu):
      pooled = sok.lookup_sparse(tables, ids, combiners=combiners,
                                 output_dtype=self._dtype)
    for group, sizes in zip(groups.values(), counts):
      size = len(group[0].tables)
      mine, pooled = pooled[:size], pooled[size:]
      parts = [mine] if len(group) == 1 else [
          [part] for part in tf.split(mine[0], tf.stack(sizes), num=len(group))]
      for layer, part in zip(group, parts):
        slots, floats = layer.embedding.bottom.slot_num, models.top_width(layer.embedding)
        top = tf.stack(part, axis=1) if is_slot_major(layer.embedding) else part[0]
        tensors[layer.embedding.top] = tf.reshape(top, [-1, slots, floats])


def _combiner(layers):
  """Returns the combiner of the pooled lookups of a table; its other ones take any."""
  pooled = [l.embedding.combiner for l in layers if not concat.is_concat(l.embedding)]
  return pooled[0] if pooled else "sum"


def _joined(ids):
  """Returns the keys of layers that use one table as those of one layer.

  Args:
    ids: list of results of `_ids`, of one RaggedTensor each if there are several.
  """
  if len(ids) == 1:
    return ids[0]
  splits = [ids[0][0].row_splits]
  for keys, in ids[1:]:
    splits.append(keys.row_splits[1:] + splits[-1][-1])
  return [tf.RaggedTensor.from_row_splits(
      tf.concat([keys.flat_values for keys, in ids], 0), tf.concat(splits, 0),
      validate=False)]


def _ids(layer):
  """Returns a layer's keys as one RaggedTensor per table."""
  if is_slot_major(layer.embedding):
    splits = tf.unstack(layer.splits)
    keys = tf.split(layer.keys, layer.splits[:, -1], num=len(layer.tables))
  else:
    splits, keys = [layer.splits], [layer.keys]
  found = [tf.RaggedTensor.from_row_splits(k, s, validate=False)
           for k, s in zip(keys, splits)]
  if concat.is_concat(layer.embedding):
    found = [concat.positions(f, layer.embedding) for f in found]
  return found

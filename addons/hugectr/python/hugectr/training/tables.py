# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The embedding layers: their tables, the keys that are fed, the lookup."""

import collections
import re

import tensorflow as tf

import sparse_operation_kit as sok

# Initial values of rows whose slot's size is not known.
_LIMIT = 0.05

# embedding: config's Embedding. tables: list of sok.DynamicVariable, one for all slots, or
# one per slot. keys, splits: int64 placeholders, as data's Keys.
Layer = collections.namedtuple("Layer", ["embedding", "tables", "keys", "splits"])


def is_slot_major(embedding):
  """Returns whether a layer has a table per slot, and takes keys slot by slot."""
  return embedding.bottom.is_localized


def _table(name, embedding, slot, ranks):
  """Returns the table of a slot, or of all slots (slot None)."""
  limit, mode = _LIMIT, "distributed"
  if slot is not None:
    # Slot modulo ranks, of all of the data's slots.
    mode = "localized:%d" % ((embedding.bottom.first_slot + slot) % ranks)
    if embedding.slot_sizes and embedding.slot_sizes[slot]:
      limit = embedding.slot_sizes[slot] ** -0.5
  return sok.DynamicVariable(
      embedding.vec_size, name=name, key_type=tf.int64, var_type="auto", mode=mode,
      initializer=tf.compat.v1.random_uniform_initializer(-limit, limit))


def make(embeddings, ranks):
  """Returns a Layer per embedding, with its tables and placeholders.

  Args:
    embeddings: list of config's Embedding.
    ranks: int.
  """
  found = []
  for embedding in embeddings:
    # A variable's name allows few characters.
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", embedding.name).lstrip("_-") or "embedding"
    if is_slot_major(embedding):
      tables = [_table("%s/slot_%d" % (name, s), embedding, s, ranks)
                for s in range(embedding.bottom.slot_num)]
      splits_shape = [embedding.bottom.slot_num, None]
    else:
      tables, splits_shape = [_table(name, embedding, None, ranks)], [None]
    found.append(Layer(
        embedding, tables,
        tf.compat.v1.placeholder(tf.int64, [None], "%s/keys" % name),
        tf.compat.v1.placeholder(tf.int64, splits_shape, "%s/splits" % name)))
  return found


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

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the checkpoints in golden/, which every version must load.

  python tests/conformance/golden.py FOLDER     # with python/ on the PYTHONPATH

ours: one table as this package writes it. partitioned: the same in three parts. deeprec:
in DeepRec's format. Each slot has its own keys, bucket by bucket (`key % 1000`) in the
order of a hash table. It was saved during updates: the second slot has no row for key 5,
but has a row for key 3005, which the table lacks.
"""

import os
import sys

import numpy as np
import tensorflow as tf

import embedding_variable  # pylint: disable=unused-import
from embedding_variable.ops import checkpoint_ops

DIM = 3
FILTER_FREQ = 3
DEFAULT_ROW = [9., 8., 7.]
SLOTS = ("Adam", "Adam_1")
KEYS = np.array([
    -2**63, -2**63 + 1, -1001, -1000, -1, 0, 1, 5, 999, 1000, 1005, 2005, 123456789,
    2**62, 2**63 - 1
])
VALUES = (np.arange(len(KEYS))[:, None] + np.array([.25, -.5, .125])).astype(np.float32)
SLOT_VALUES = (VALUES + 100, VALUES + 200)
VERSIONS = np.arange(len(KEYS)) + 3
FREQUENCIES = np.arange(len(KEYS)) * 7 + FILTER_FREQ
FILTERED_KEYS = np.array([-7, 7, 2007])
FILTERED_VERSIONS = np.array([4, 5, 6])
FILTERED_FREQUENCIES = np.array([1, 2, 1])
GLOBAL_STEP = 20


def variable(parts=None):
  """Returns the golden table in the default graph, with its optimizer's slots."""
  for flag in ("TF_RECORD_FREQ", "TF_RECORD_VERSION"):
    os.environ[flag] = "1"
  table = tf.get_embedding_variable(
      "v", DIM, initializer=tf.constant_initializer(DEFAULT_ROW),
      partitioner=None if parts is None else tf.fixed_size_partitioner(parts),
      ev_option=tf.EmbeddingVariableOption(
          filter_option=tf.CounterFilter(filter_freq=FILTER_FREQ),
          init_option=tf.InitializerOption(
              initializer=lambda shape, dtype: tf.constant([DEFAULT_ROW]),
              default_value_dim=1)))
  loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [1]))
  tf.train.AdamOptimizer().minimize(loss)
  return table


def tables(table):
  """Returns a list of the variable's parts."""
  return [table] if isinstance(
      table, embedding_variable.EmbeddingVariable) else list(table)


def _save(path, parts):
  with tf.Graph().as_default(), tf.Session() as session:
    found = tables(variable(parts))
    saver = tf.train.Saver(found)
    session.run(tf.global_variables_initializer())
    for i, part in enumerate(found):
      session.run(checkpoint_ops.import_table(
          part.handle, KEYS, VALUES, VERSIONS, FREQUENCIES, SLOT_VALUES, SLOTS,
          [0., 0.], part=i, num_parts=len(found)))
      session.run(checkpoint_ops.import_filtered(
          part.handle, FILTERED_KEYS, FILTERED_VERSIONS, FILTERED_FREQUENCIES, part=i,
          num_parts=len(found)))
    saver.save(session, path, write_meta_graph=False, write_state=False)


def make_ours(path):
  """Writes the checkpoint `ours`."""
  _save(path, None)


def make_partitioned(path):
  """Writes the checkpoint `partitioned`."""
  _save(path, 3)


def _in_buckets(keys, seed):
  """Returns the order of keys by bucket, shuffled in each bucket, and the offsets."""
  order = np.random.RandomState(seed).permutation(len(keys))
  order = order[np.argsort(keys[order] % 1000, kind="stable")]
  counts = np.bincount(keys % 1000, minlength=1000)
  return order, np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def make_deeprec(path):
  """Writes the checkpoint `deeprec`."""
  tensors = {"global_step": np.int64(GLOBAL_STEP)}
  filtered, filtered_offset = _in_buckets(FILTERED_KEYS, 9)
  for seed, (name, values) in enumerate(
      [("v", VALUES)] + [("v/" + s, v) for s, v in zip(SLOTS, SLOT_VALUES)]):
    keys = KEYS.copy()
    if name == "v/Adam_1":
      keys[keys == 5] = 3005
    order, offset = _in_buckets(keys, seed)
    tensors.update({
        name + "-keys": keys[order],
        name + "-values": values[order],
        name + "-versions": VERSIONS[order],
        name + "-freqs": FREQUENCIES[order],
        name + "-partition_offset": offset,
        name + "-keys_filtered": FILTERED_KEYS[filtered],
        name + "-versions_filtered": FILTERED_VERSIONS[filtered],
        name + "-freqs_filtered": FILTERED_FREQUENCIES[filtered],
        name + "-partition_filter_offset": filtered_offset,
    })
  names = sorted(tensors)
  with tf.Graph().as_default(), tf.Session() as session:
    session.run(tf.raw_ops.SaveV2(
        prefix=path, tensor_names=names, shape_and_slices=[""] * len(names),
        tensors=[tensors[n] for n in names]))


MAKERS = {"ours": make_ours, "partitioned": make_partitioned, "deeprec": make_deeprec}

if __name__ == "__main__":
  for golden, maker in MAKERS.items():
    os.makedirs(os.path.join(sys.argv[1], golden), exist_ok=True)
    maker(os.path.join(sys.argv[1], golden, "model.ckpt"))

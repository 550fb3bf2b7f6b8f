# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Batches of Norm, Raw and Parquet files as `tf.data.Dataset`s.

An element is a dict:

  "label"  float32 [batch, label_dim]
  "dense"  float32 [batch, dense_dim]
  "keys"   RaggedTensor of int64 [batch * slots, keys]: the slots of the first sample, then
           those of the second, and so on

  batch = tf.compat.v1.data.make_one_shot_iterator(
      hugectr.data.parquet_dataset("train/_file_list.txt", 1, 13, 26, 4096)).get_next()
  rows = sok.lookup_sparse(table, batch["keys"], combiners="sum")

Files are read when an iterator requests the first batch, so an error in a file is raised
by that step.
"""

import tensorflow as tf

from hugectr.config import model
from hugectr.data import batches
from hugectr.data import sources


def _dataset(path, kind, label_dim, dense_dim, slots, batch_size, repeat, key_type,
             threads, shuffle_seed, slot_sizes, **clause):
  """Returns the dataset of a format."""
  data = model.Data(
      "data", kind, path, None, "label", label_dim, "dense", dense_dim,
      [model.SparseInput("keys", False, 0, slots, None, slots)],
      list(slot_sizes) if slot_sizes else None, threads, clause)
  layouts = [batches.InputLayout(0, slots, False)]

  def generate():
    read = sources.open_source(path, data, key_type, batch_size, shuffle_seed).reader(
        layouts, repeat)
    try:
      while True:
        batch = read.next()
        if batch is None:
          return
        keys, = batch.inputs
        yield batch.labels, batch.dense, keys.keys, keys.splits
    finally:
      read.close()

  def named(labels, dense, keys, splits):
    return {"label": labels, "dense": dense,
            "keys": tf.RaggedTensor.from_row_splits(keys, splits, validate=False)}

  return tf.data.Dataset.from_generator(
      generate, (tf.float32, tf.float32, tf.int64, tf.int64),
      ([None, label_dim], [None, dense_dim], [None], [None])).map(named)


def norm_dataset(file_list, label_dim, dense_dim, slots, batch_size, check="None",
                 key_type="I64", repeat=False, threads=2):
  """Returns the batches of Norm files.

  Args:
    file_list: path of the file list.
    label_dim: int, labels of a sample.
    dense_dim: int, dense features of a sample.
    slots: int.
    batch_size: int. The last batch may have fewer samples, unless `repeat`.
    check: "Sum" or "None", whether records have checksums.
    key_type: "I32" or "I64".
    repeat: bool, whether the data starts again at its end.
    threads: int, reading threads.
  """
  return _dataset(file_list, "Norm", label_dim, dense_dim, slots, batch_size, repeat,
                  key_type, threads, None, None, check=check)


def raw_dataset(path, samples, label_dim, dense_dim, slots, batch_size,
                float_label_dense=False, slot_size_array=None, shuffle_seed=None,
                repeat=False, threads=2):
  """Returns the batches of a Raw file.

  Args:
    path: path of the file.
    samples: int, number of samples in the file.
    label_dim: int, labels of a sample.
    dense_dim: int, dense features of a sample.
    slots: int.
    batch_size: int.
    float_label_dense: bool, whether labels and dense features are float32.
    slot_size_array: list of the number of keys per slot; the sizes of the previous
      slots are added to the keys of each slot. None: nothing is added.
    shuffle_seed: int, seed of the order of batches; None: the file's order.
    repeat: bool, whether the data starts again at its end.
    threads: int, reading threads.
  """
  return _dataset(path, "Raw", label_dim, dense_dim, slots, batch_size, repeat, "I64",
                  threads, shuffle_seed, slot_size_array, num_samples=samples,
                  float_label_dense=float_label_dense)


def parquet_dataset(file_list, label_dim, dense_dim, slots, batch_size,
                    slot_size_array=None, key_type="I64", repeat=False, threads=2):
  """Returns the batches of Parquet files that NVTabular wrote.

  Args:
    file_list: path of the file list, with _metadata.json in the same folder.
    label_dim: int, labels of a sample.
    dense_dim: int, dense features of a sample.
    slots: int.
    batch_size: int.
    slot_size_array: list of the number of keys per slot; the sizes of the previous
      slots are added to the keys of each slot. None: nothing is added.
    key_type: "I32" or "I64"; with I32 larger keys raise an error.
    repeat: bool, whether the data starts again at its end.
    threads: int, row groups that are read concurrently.
  """
  return _dataset(file_list, "Parquet", label_dim, dense_dim, slots, batch_size, repeat,
                  key_type, threads, None, slot_size_array)

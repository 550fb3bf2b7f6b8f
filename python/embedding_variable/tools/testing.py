# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints for the tools' tests, written without the tools."""

import collections
import os

import numpy as np
import tensorflow as tf

_BUCKETS = 1000


def write(prefix, tensors):
  """Writes a stock V2 checkpoint of NumPy arrays by name."""
  with tf.Graph().as_default(), tf.Session() as session:
    names = sorted(tensors)
    session.run(tf.raw_ops.SaveV2(
        prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names),
        tensors=[tf.constant(tensors[n]) for n in names]))
  return prefix


def table(prefix, keys, values, versions=None, freqs=None, filtered=(), slots=None,
          defaults=None):
  """Returns the tensors of a table as DeepRec names them.

  Args:
    prefix: string.
    keys: list of ints.
    values: list of lists of floats, one for each key.
    versions, freqs: list of ints, or None: not recorded.
    filtered: list of (key, version, frequency) that were not admitted.
    slots: dict: slot -> list of rows.
    defaults: list of rows, or None as in DeepRec's own files.
  """
  keys = np.array(keys, np.int64)
  order = np.lexsort((keys, keys % _BUCKETS))
  filtered = sorted(filtered, key=lambda f: (f[0] % _BUCKETS, f[0]))

  def offsets(some_keys):
    counts = np.bincount(np.array(some_keys, np.int64) % _BUCKETS, minlength=_BUCKETS)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)

  def meta(numbers):
    return np.array([] if numbers is None else numbers, np.int64)

  tensors = collections.OrderedDict()
  rows = [(prefix, values)]
  rows += [("%s/%s" % (prefix, s), v) for s, v in (slots or {}).items()]
  for name, row_values in rows:
    tensors[name + "-keys"] = keys[order]
    tensors[name + "-values"] = np.array(row_values, np.float32)[order]
    for column, numbers in (("versions", versions), ("freqs", freqs)):
      numbers = meta(numbers)
      tensors["%s-%s" % (name, column)] = numbers[order] if len(numbers) else numbers
    tensors[name + "-partition_offset"] = offsets(keys)
    for i, column in enumerate(("keys", "versions", "freqs")):
      tensors["%s-%s_filtered" % (name, column)] = meta([f[i] for f in filtered])
    tensors[name + "-partition_filter_offset"] = offsets([f[0] for f in filtered])
  if defaults is not None:
    tensors[prefix + "-default_rows"] = np.array(defaults, np.float32)
  return tensors


def read(prefix):
  """Returns all tensors of a checkpoint by name, through stock TensorFlow."""
  reader = tf.train.load_checkpoint(prefix)
  return {n: reader.get_tensor(n) for n in reader.get_variable_to_shape_map()}


def files(directory):
  """Returns the names of all files under a directory."""
  return sorted(os.path.join(d, n) for d, _, names in os.walk(directory) for n in names)

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Helpers of the op tests: a table with known default rows, and NumPy oracles."""

import numpy as np
import tensorflow as tf

from embedding_variable.ops import handle_ops

# Keys that a hash table could confuse with its own sentinel values.
EXTREME_KEYS = [
    0, -1, 1, -2**63, 2**63 - 1, -2**63 + 1, 2**31, -2**31 - 1, 2**32 - 1
]


def default_rows(num_rows, dim, seed=0):
  """Returns float32 `[num_rows, dim]`."""
  return np.random.RandomState(seed).randn(num_rows, dim).astype(np.float32)


def rows_of(keys, defaults):
  """Returns the default rows of `keys`: row floormod(key, R)."""
  keys = [int(k) % len(defaults) for k in np.reshape(keys, [-1])]
  return defaults[keys]


class Table(object):
  """One table in the default graph: handle, initialiser and default rows."""

  def __init__(self, name, dim, num_rows=7, **kwargs):
    self.name = name
    self.dim = dim
    self.defaults = default_rows(num_rows, dim, seed=len(name) + dim)
    self.handle = handle_ops.handle(name, dim, **kwargs)
    self.init = handle_ops.initialize(self.handle, self.defaults)


def pool(rows, sample_of_id, batch_size, combiner, weights=None):
  """Pools float64 rows `[N, D]` by the lookup's definition; returns `[B, D]`."""
  rows = np.asarray(rows, np.float64)
  if weights is None:
    weights = np.ones(len(rows))
  weights = np.asarray(weights, np.float64)
  result = np.zeros([batch_size, rows.shape[1]])
  total = np.zeros(batch_size)
  squares = np.zeros(batch_size)
  for row, sample, weight in zip(rows, sample_of_id, weights):
    result[sample] += weight * row
    total[sample] += weight
    squares[sample] += weight * weight
  for sample in set(sample_of_id):
    if combiner == "mean":
      result[sample] /= total[sample]
    elif combiner == "sqrtn":
      result[sample] /= np.sqrt(squares[sample])
  return result


def session(**kwargs):
  """Returns a session with two threads per pool, as on small machines."""
  return tf.compat.v1.Session(
      config=tf.compat.v1.ConfigProto(
          intra_op_parallelism_threads=kwargs.pop("intra", 2),
          inter_op_parallelism_threads=kwargs.pop("inter", 2)), **kwargs)

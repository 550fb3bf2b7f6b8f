# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reproducible batches of ids for benchmarks, by a Zipf or a uniform distribution."""

import numpy as np


def zipf_cdf(rows, exponent):
  """Returns the cumulative probabilities [rows] of a Zipf law over `rows` values."""
  weights = np.arange(1, rows + 1, dtype=np.float64) ** -exponent
  cdf = np.cumsum(weights)
  return cdf / cdf[-1]


def draw(rng, distribution, rows, shape, exponent):
  """Draws row numbers in [0, rows).

  Args:
    rng: np.random.RandomState.
    distribution: "zipf" (ranks are shuffled, so that hot rows are not adjacent) or
      "uniform".
    rows: int, number of distinct values.
    shape: shape of the result.
    exponent: float, the Zipf exponent.

  Returns:
    int64 array of `shape`.

  Raises:
    ValueError: for another distribution.
  """
  if distribution == "uniform":
    return rng.randint(0, rows, size=shape, dtype=np.int64)
  if distribution == "zipf":
    ranks = np.searchsorted(zipf_cdf(rows, exponent), rng.random_sample(shape))
    return rng.permutation(rows).astype(np.int64)[ranks]
  raise ValueError(
      "distribution: expected 'zipf' or 'uniform', got %r" % (distribution,))


def aligned(shape, dtype, alignment=64):
  """Returns an aligned array, which TensorFlow does not copy when it is fed."""
  size = int(np.prod(shape)) * np.dtype(dtype).itemsize
  memory = np.empty(size + alignment, np.uint8)
  begin = -memory.ctypes.data % alignment
  return memory[begin:begin + size].view(dtype).reshape(shape)


def batches(workload, num_batches, seed, exponent):
  """Returns the batches that a run cycles through.

  Args:
    workload: defaults.Workload.
    num_batches: int.
    seed: int; the same seed gives the same ids.
    exponent: float, the Zipf exponent.

  Returns:
    int64 [num_batches, tables, batch * hotness], aligned.
  """
  ids = aligned(
      [num_batches, workload.tables, workload.batch * workload.hotness], np.int64)
  for table in range(workload.tables):
    rng = np.random.RandomState(seed * 1000 + table)
    ids[:, table, :] = draw(rng, workload.distribution, workload.rows_per_table,
                            [num_batches, ids.shape[2]], exponent)
  return ids

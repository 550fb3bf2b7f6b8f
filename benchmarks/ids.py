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


def more_of_each(first, count, rows, seed):
  """Returns `count` ids for each id: itself, and others that are a function of it.

  MLPerf's DLRM-DCNv2 makes its multi-hot data so, from a random matrix [rows, count]; here
  a hash (SplitMix64) stands for the matrix.

  Args:
    first: int64 array of row numbers in [0, rows).
    count: int.
    rows: int.
    seed: int; another seed gives other ids.

  Returns:
    int64 array of shape first.shape + [count].
  """
  number = np.uint64(seed) << np.uint64(48)
  x = (first.astype(np.uint64)[..., None] * np.uint64(count) +
       np.arange(count, dtype=np.uint64) + number + np.uint64(1))
  x *= np.uint64(0x9E3779B97F4A7C15)
  for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
    x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
  found = (x % np.uint64(rows)).astype(np.int64)
  found[..., 0] = first
  return found


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

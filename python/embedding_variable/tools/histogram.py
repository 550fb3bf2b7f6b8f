# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Histograms of frequencies and versions."""

import collections

import numpy as np

_MAX_BINS = 12
_BAR_WIDTH = 40

# label: string; low, high: the first and last value of the bin (the first and last bin
# are limited to existing values); count: int.
Bin = collections.namedtuple("Bin", ["label", "low", "high", "count"])


def of_frequencies(values):
  """Returns bins of doubling width: 0, 1, 2-3, 4-7 and so on.

  Args:
    values: int64 `[N]`, none below 0.

  Returns:
    List of `Bin`, without empty ones at either end.
  """
  if not len(values):
    return []
  bins, low, high = [], 0, 0
  largest = int(values.max())
  while low <= largest:
    bins.append((low, high))
    low, high = high + 1, 2 * high + 1
  return _trimmed(_count(values, bins))


def of_versions(values):
  """Returns bins of equal width over the versions; rows without a version come first.

  Args:
    values: int64 `[N]`; -1 for a row that was never updated.

  Returns:
    List of `Bin`.
  """
  bins = []
  never = int(np.count_nonzero(values < 0))
  if never:
    bins.append(Bin("never", -1, -1, never))
  values = values[values >= 0]
  if not len(values):
    return bins
  low, high = int(values.min()), int(values.max())
  width = max(1, -(-(high - low + 1) // _MAX_BINS))
  edges = [(start, min(start + width - 1, high))
           for start in range(low, high + 1, width)]
  return bins + _count(values, edges)


def _count(values, edges):
  """Returns the `Bin`s of (low, high) pairs, in one pass over the values."""
  starts = np.array([low for low, _ in edges], values.dtype)
  which = np.searchsorted(starts, values, side="right") - 1
  counts = np.bincount(which, minlength=len(edges))
  least, largest = int(values.min()), int(values.max())
  return [
      Bin(str(low) if low == high else "%d-%d" % (low, high), max(low, least),
          min(high, largest), int(count))
      for (low, high), count in zip(edges, counts)
  ]


def _trimmed(bins):
  """Returns the bins without empty ones at either end."""
  filled = [i for i, b in enumerate(bins) if b.count]
  return bins[filled[0]:filled[-1] + 1]


def lines(bins):
  """Returns a histogram as lines of text."""
  if not bins:
    return []
  most = max(b.count for b in bins)
  label = max(len(b.label) for b in bins)
  number = max(len("{:,}".format(b.count)) for b in bins)
  return [
      "  {:>{}}  {:>{},}  {}".format(b.label, label, b.count, number,
                                     "#" * -(-b.count * _BAR_WIDTH // most)).rstrip()
      for b in bins
  ]

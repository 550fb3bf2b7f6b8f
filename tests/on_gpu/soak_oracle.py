# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Closed form of a table that is trained by SGD with constant gradients.

Every occurrence of a key in a batch has the gradient `weights`, so after n occurrences a
row is `initial - rate * n * weights`. All three are small multiples of a power of two, so
float32 adds them without rounding in any order, and a table must have exactly these bits.
"""

import numpy as np

RATE = 2. ** -5


def initial_row(dim):
  """Returns float32 `[dim]`: 1/4, 1/2, 3/4, 1, 1/4, ..."""
  return ((np.arange(dim) % 4 + 1) / 4.).astype(np.float32)


def weights(dim):
  """Returns float32 `[dim]`, the gradient of one occurrence: 1, 1/2, 2, 1, ..."""
  return np.array([1., .5, 2.], np.float32)[np.arange(dim) % 3]


def keys_of(numbers):
  """Returns the keys of key numbers: int64, spread over the whole range."""
  return (np.asarray(numbers, np.uint64) *
          np.uint64(0x9e3779b97f4a7c15)).astype(np.int64)


class Oracle(object):
  """A table over a universe of numbered keys.

  Attributes:
    counts: int64 `[universe]`, occurrences since the key was inserted; 0: absent.
    versions: int64 `[universe]`, the step of the key's last update.
  """

  def __init__(self, universe, dim):
    self._dim = dim
    self.counts = np.zeros(universe, np.int64)
    self.versions = np.full(universe, -1, np.int64)

  def copy(self):
    other = Oracle(0, self._dim)
    other.counts, other.versions = self.counts.copy(), self.versions.copy()
    return other

  def rows(self, numbers):
    """Returns the rows that a lookup reads: float64 `numbers.shape + [dim]`."""
    counts = self.counts[numbers][..., np.newaxis]
    return initial_row(self._dim) - RATE * counts * weights(self._dim)

  def train(self, numbers, step):
    """Trains one step with the keys `numbers`, which may repeat."""
    np.add.at(self.counts, numbers, 1)
    self.versions[numbers] = step

  def evict_stale(self, step, steps_to_live):
    """Returns the number of evicted rows."""
    return self._evict((self.counts > 0) & (step - self.versions > steps_to_live))

  def evict_weak(self, threshold):
    """Returns the number of evicted rows."""
    present = np.flatnonzero(self.counts)
    weak = .5 * np.sum(np.square(self.rows(present)), axis=1) < threshold
    gone = np.zeros(len(self.counts), bool)
    gone[present[weak]] = True
    return self._evict(gone)

  def _evict(self, gone):
    self.counts[gone] = 0
    self.versions[gone] = -1
    return int(np.count_nonzero(gone))

  def table(self):
    """Returns (keys int64 [N] in ascending order, rows float32 [N, dim])."""
    present = np.flatnonzero(self.counts)
    keys = keys_of(present)
    order = np.argsort(keys)
    return keys[order], self.rows(present[order]).astype(np.float32)

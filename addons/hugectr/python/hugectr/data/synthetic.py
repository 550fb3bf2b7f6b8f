# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Random samples with a planted signal."""

import numpy as np

from hugectr.data import batches


class Planted(object):
  """Samples whose label depends on their keys and dense features.

  Args:
    sizes: list of ints, number of keys per slot.
    dense_dim: int.
    seed: int, seed of the planted weights.
    whole: bool, whether dense features are logarithms log(x + 1) of integers.
    label_dim: int of at least 1, labels per sample; each label has its own weights.
  """

  def __init__(self, sizes, dense_dim, seed=0, whole=False, label_dim=1):
    random = np.random.RandomState(seed)
    self._whole = whole
    self.sizes = list(sizes)
    self._rows = [random.randn(size) for size in sizes]
    self._dense = random.randn(dense_dim) * .5
    # For the labels after the first, which does not depend on their number.
    self._others = [Planted(sizes, dense_dim, (seed, k)) for k in range(1, label_dim)]

  @property
  def dense_dim(self):
    """int, dense features of a sample."""
    return len(self._dense)

  def samples(self, count, seed):
    """Returns arrays (first labels [N], dense [N, dense_dim], keys [N, slots])."""
    random = np.random.RandomState(seed)
    dense = random.randn(count, len(self._dense)).astype(np.float32)
    if self._whole:
      dense = np.log1p(np.floor(np.expm1(1.5 * np.abs(dense))))
    # Small keys are more frequent.
    keys = np.stack([(size * random.rand(count) ** 2).astype(np.int64)
                     for size in self.sizes], axis=1)
    labels = random.rand(count) < self.probabilities(dense, keys)
    return labels.astype(np.float32), dense, keys

  def other_labels(self, dense, keys, seed):
    """Returns the samples' labels except the first, float32 `[N, label_dim - 1]`."""
    found = [np.random.RandomState((seed, k)).rand(len(dense)) <
             other.probabilities(dense, keys) for k, other in enumerate(self._others, 1)]
    return np.array(found, np.float32).reshape([len(self._others), len(dense)]).T

  def probabilities_of_labels(self, dense, keys):
    """Returns the planted probability of each label, `[label_dim, N]`."""
    return [p.probabilities(dense, keys) for p in [self] + self._others]

  def probabilities(self, dense, keys):
    """Returns the planted probability of each sample's first label, `[N]`."""
    logit = dense @ self._dense + 2 / len(self.sizes) ** .5 * sum(
        rows[keys[:, s]] for s, rows in enumerate(self._rows))
    return 1 / (1 + np.exp(-logit))


def auc_of_probabilities(labels, probabilities):
  """Returns the AUC of predictions without ties."""
  ranks = np.empty(len(labels))
  ranks[np.argsort(probabilities, kind="stable")] = np.arange(1, len(labels) + 1)
  positives = labels.sum()
  above = ranks[labels > 0].sum() - positives * (positives + 1) / 2
  return above / (positives * (len(labels) - positives))


def chunks(planted, samples, seed, size=65536):
  """Yields samples as Chunks whose keys have no offsets.

  Args:
    planted: Planted.
    samples: int.
    seed: int, seed of the samples.
    size: int, samples per chunk.
  """
  for k, first in enumerate(range(0, samples, size)):
    labels, dense, keys = planted.samples(min(size, samples - first), seed * 1000 + k)
    labels = np.concatenate([labels[:, None], planted.other_labels(
        dense, keys, seed * 1000 + k)], axis=1)
    yield batches.Chunk(labels, dense,
                        [batches.Slot(np.ascontiguousarray(c), None) for c in keys.T])

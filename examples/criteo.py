# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Click logs in the format of Criteo's Kaggle `train.txt`, and a generator of them.

A line is: label (0 or 1), 13 integers, 26 categories of 8 hexadecimal digits, separated
by tabs. Any field except the label may be empty.

The generator has a planted model: every category value has a weight, some pairs
of features interact, and the integers have small weights. It draws each label
with the model's probability, and returns the probabilities. No model that reads
only the features can rank better than these probabilities, so their AUC is the
best that a trained model can reach on the same lines.
"""

import collections

import numpy as np

NUM_NUMERIC = 13
NUM_CATEGORICAL = 26
NUM_FIELDS = 1 + NUM_NUMERIC + NUM_CATEGORICAL

# Distinct values of each categorical feature: small, medium and large ones in the order
# of magnitude of the real data. The largest are cut so that a demo meets their values.
CARDINALITIES = (
    1400, 550, 100000, 60000, 300, 20, 11000, 600, 3, 30000, 5000, 80000, 3000,
    26, 10000, 70000, 10, 4500, 2000, 4, 75000, 17, 15, 40000, 90, 30000)

# Pairs of categorical features that interact, as in a factorization machine.
INTERACTIONS = ((0, 5), (1, 8), (4, 16), (7, 21), (13, 24))

MISSING = -1                 # index of an empty category
MISSING_NUMERIC = -(2 ** 31)  # value of an empty integer

_ZIPF_EXPONENT = 1.1
_LATENT_DIM = 2
_MAX_NUMERIC = 65535
_MIN_NUMERIC = -3
_CHUNK_ROWS = 50 * 1000

# numeric: int64 [n, 13]; MISSING_NUMERIC where empty.
# categorical: int64 [n, 26], index of the value; MISSING where empty.
# probability: float64 [n], the probability that the label is 1.
# label: int64 [n].
Examples = collections.namedtuple(
    "Examples", ["numeric", "categorical", "probability", "label"])


def _weight_scale(cardinality):
  """Returns the deviation of a feature's weights: rare values have smaller weights."""
  if cardinality <= 1000:
    return 0.42
  return 0.16 if cardinality <= 12000 else 0.06


def token(feature, index):
  """Returns the text of a category: 8 hexadecimal digits, empty for MISSING."""
  if index == MISSING:
    return b""
  # A bijection of 32-bit numbers (odd factors, shifts): distinct indices stay distinct.
  x = (index + feature * 0x01000193) & 0xFFFFFFFF
  x = ((x ^ (x >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
  x = ((x ^ (x >> 15)) * 0x846CA68B) & 0xFFFFFFFF
  return b"%08x" % (x ^ (x >> 16))


class DataError(Exception):
  """A file cannot be read or has another format. The message names the file."""


class PlantedModel(object):
  """A logistic model of clicks, drawn from a seed.

  Attributes:
    cardinalities: distinct values of each categorical feature.
  """

  def __init__(self, seed=0, cardinalities=CARDINALITIES):
    if len(cardinalities) != NUM_CATEGORICAL:
      raise ValueError("expected %d cardinalities, got %d" %
                       (NUM_CATEGORICAL, len(cardinalities)))
    rng = np.random.RandomState(seed)
    self.cardinalities = tuple(cardinalities)
    # The last weight is that of MISSING (index -1).
    self._weights = [
        rng.normal(0, _weight_scale(n), n + 1) for n in cardinalities]
    in_pairs = sorted({f for pair in INTERACTIONS for f in pair})
    self._latent = {
        f: rng.normal(0, 0.45, [cardinalities[f] + 1, _LATENT_DIM])
        for f in in_pairs}
    self._numeric_weights = rng.normal(0, 0.12, NUM_NUMERIC)
    self._numeric_means = rng.uniform(0.5, 4.0, NUM_NUMERIC)
    self._missing_rates = rng.uniform(0.0, 0.2, NUM_NUMERIC + NUM_CATEGORICAL)
    self._cdfs = [self._zipf_cdf(n) for n in cardinalities]
    # The frequency of a value does not depend on its index.
    self._orders = [rng.permutation(n) for n in cardinalities]

  @staticmethod
  def _zipf_cdf(n):
    cdf = np.cumsum(np.arange(1, n + 1, dtype=np.float64) ** -_ZIPF_EXPONENT)
    return cdf / cdf[-1]

  def sample(self, rng, n):
    """Draws n examples.

    Args:
      rng: np.random.RandomState.
      n: int.

    Returns:
      Examples.
    """
    missing = rng.random_sample([n, len(self._missing_rates)])
    missing = missing < self._missing_rates
    numeric = np.exp(rng.normal(self._numeric_means, 1.2, [n, NUM_NUMERIC]))
    numeric = numeric.astype(np.int64)
    # The real data's second integer can be negative.
    numeric[:, 1] += _MIN_NUMERIC
    numeric = np.clip(numeric, _MIN_NUMERIC, _MAX_NUMERIC)
    numeric[missing[:, :NUM_NUMERIC]] = MISSING_NUMERIC

    categorical = np.empty([n, NUM_CATEGORICAL], np.int64)
    for f in range(NUM_CATEGORICAL):
      ranks = np.searchsorted(self._cdfs[f], rng.random_sample(n))
      categorical[:, f] = self._orders[f][ranks]
    categorical[missing[:, NUM_NUMERIC:]] = MISSING
    probability = self.probability(numeric, categorical)
    label = (rng.random_sample(n) < probability).astype(np.int64)
    return Examples(numeric, categorical, probability, label)

  def probability(self, numeric, categorical):
    """Returns the planted probability of a click: float64 [n]."""
    present = numeric != MISSING_NUMERIC
    features = np.log1p(np.maximum(numeric, 0)) - self._numeric_means
    logit = -1.2 + np.dot(features * present, self._numeric_weights)
    for f in range(NUM_CATEGORICAL):
      logit += self._weights[f][categorical[:, f]]
    for f, g in INTERACTIONS:
      logit += np.sum(self._latent[f][categorical[:, f]] *
                      self._latent[g][categorical[:, g]], axis=1)
    return 1.0 / (1.0 + np.exp(-logit))


class _Tokens(object):
  """Texts of the categories; each is made once, when its value occurs."""

  def __init__(self, cardinalities):
    self._tokens = [np.full(n + 1, None, dtype=object) for n in cardinalities]

  def of(self, feature, indices):
    tokens = self._tokens[feature]
    unique = np.unique(indices)
    for index in unique[[t is None for t in tokens[unique]]]:
      tokens[index] = token(feature, int(index))
    return tokens[indices].tolist()


def _numeric_tokens():
  table = np.empty(_MAX_NUMERIC - _MIN_NUMERIC + 2, dtype=object)
  table[:-1] = [b"%d" % i for i in range(_MIN_NUMERIC, _MAX_NUMERIC + 1)]
  table[-1] = b""
  return table


def write(path, num_rows, model, seed):
  """Writes generated lines.

  Args:
    path: file to write, replaced if it exists.
    num_rows: int, number of lines.
    model: PlantedModel.
    seed: int, seed of the examples (the model has its own seed).

  Returns:
    (probability float64 [num_rows], label int64 [num_rows]) of the lines.
  """
  rng = np.random.RandomState(seed)
  tokens = _Tokens(model.cardinalities)
  numeric_tokens = _numeric_tokens()
  probabilities, labels = [], []
  with open(path, "wb") as f:
    for begin in range(0, num_rows, _CHUNK_ROWS):
      examples = model.sample(rng, min(_CHUNK_ROWS, num_rows - begin))
      columns = [np.array([b"0", b"1"], object)[examples.label].tolist()]
      numeric = np.where(examples.numeric == MISSING_NUMERIC, -1,
                         examples.numeric - _MIN_NUMERIC)
      columns.extend(numeric_tokens[numeric[:, i]].tolist()
                     for i in range(NUM_NUMERIC))
      columns.extend(tokens.of(i, examples.categorical[:, i])
                     for i in range(NUM_CATEGORICAL))
      f.write(b"\n".join(map(b"\t".join, zip(*columns))))
      f.write(b"\n")
      probabilities.append(examples.probability)
      labels.append(examples.label)
  return np.concatenate(probabilities), np.concatenate(labels)

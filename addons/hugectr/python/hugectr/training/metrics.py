# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics of an evaluation, over all of its samples."""

import collections

import numpy as np

# name: a key of `_OF_SAMPLES`, or "AverageLoss". threshold: float or None: value at
# which training may end.
Metric = collections.namedtuple("Metric", ["name", "threshold"])


def parse(text):
  """Returns the Metric for a text such as "AUC", "AUC:0.8" or "AverageLoss"."""
  name, _, threshold = text.partition(":")
  return Metric(name, float(threshold) if threshold else None)


def is_reached(metric, value):
  """Returns whether a value has reached a Metric's threshold."""
  if metric.threshold is None or np.isnan(value):
    return False
  if metric.name in ("AverageLoss", "SMAPE"):
    return value <= metric.threshold
  return value >= metric.threshold


def auc(labels, predictions):
  """Returns the exact area under the ROC curve; equal predictions are ties.

  Cost: one sort.

  Args:
    labels: floats `[N]`; at least 0.5 is positive.
    predictions: floats `[N]`.

  Returns:
    float; NaN unless there are positives and negatives, or if a prediction is NaN.
  """
  labels = np.asarray(labels) >= 0.5
  predictions = np.asarray(predictions)
  positives = int(labels.sum())
  negatives = len(labels) - positives
  if not positives or not negatives or np.isnan(predictions).any():
    return float("nan")
  order = np.argsort(predictions, kind="stable")
  ascending = predictions[order]
  # End of each run of equal predictions.
  ends = np.append(np.flatnonzero(ascending[1:] != ascending[:-1]), len(ascending) - 1)
  positive = np.diff(np.append(0, np.cumsum(labels[order])[ends]))
  negative = np.diff(np.append(-1, ends)) - positive
  below = np.cumsum(negative) - negative
  # Twice the number of pairs with the positive sample above; a tie is half a pair.
  pairs = (positive * (2 * below + negative)).sum()
  return float(pairs) / (2.0 * positives * negatives)


def hit_rate(labels, predictions):
  """Returns the fraction of positive samples among those with a prediction above 0.8.

  Args:
    labels: floats `[N]`; at least 0.5 is positive, below -0.5 unknown and ignored.
    predictions: floats `[N]`.

  Returns:
    float; NaN if no prediction is above 0.8, or if one is NaN.
  """
  labels, predictions = _known(labels, predictions)
  if np.isnan(predictions).any():
    return float("nan")
  hits = labels[predictions > _SURE] >= 0.5
  return float(hits.mean()) if len(hits) else float("nan")


def ndcg(labels, predictions):
  """Returns the normalized discounted cumulative gain of all samples as one ranking.

  The gain of the positive labels, each 1 / log2(1 + rank) by descending prediction,
  divided by that of the best ranking. Samples with equal predictions share the mean of
  their ranks' discounts. Source: Jaervelin and Kekaelaeinen, Cumulated gain-based
  evaluation (2002); ties as in McSherry and Najork (2008).

  Cost: one sort.

  Args:
    labels: floats `[N]`; at least 0.5 is positive, below -0.5 unknown and ignored.
    predictions: floats `[N]`.

  Returns:
    float in [0, 1]; NaN if there is no positive, or if a prediction is NaN.
  """
  labels, predictions = _known(labels, predictions)
  positive = labels >= 0.5
  if not positive.any() or np.isnan(predictions).any():
    return float("nan")
  order = np.argsort(-predictions, kind="stable")
  falling = predictions[order]
  discounts = 1.0 / np.log2(np.arange(2, len(order) + 2))
  # Start of each run of equal predictions.
  begins = np.append(0, np.flatnonzero(falling[1:] != falling[:-1]) + 1)
  lengths = np.diff(np.append(begins, len(falling)))
  hits = np.add.reduceat(positive[order].astype(np.float64), begins)
  gain = (np.add.reduceat(discounts, begins) / lengths * hits).sum()
  return float(gain / discounts[:positive.sum()].sum())


def smape(labels, predictions):
  """Returns the symmetric mean absolute percentage error, in [0, 2].

  The mean of |prediction - label| / ((|prediction| + |label|) / 2), 0 if both are 0.
  Source: Makridakis, Accuracy measures (1993), as a fraction, not times 100.

  Args:
    labels: floats `[N]`; below -0.5 unknown and ignored.
    predictions: floats `[N]`.

  Returns:
    float; NaN if there is no sample, or if a prediction is NaN.
  """
  labels, predictions = (a.astype(np.float64) for a in _known(labels, predictions))
  if not len(labels):
    return float("nan")
  sizes = (np.abs(labels) + np.abs(predictions)) / 2
  errors = np.abs(predictions - labels)
  return float(np.mean(errors / np.where(sizes == 0, 1., sizes)))


def _known(labels, predictions):
  """Returns the known labels, and their predictions."""
  labels, predictions = np.asarray(labels), np.asarray(predictions)
  known = labels >= -0.5
  return labels[known], predictions[known]


# HitRate treats a prediction above this as positive.
_SURE = 0.8

# Functions (labels [N], predictions [N]) -> float.
_OF_SAMPLES = {"AUC": auc, "HitRate": hit_rate, "NDCG": ndcg, "SMAPE": smape}


def mean_over_labels(function, labels, predictions):
  """Returns the mean of a function's results over the labels.

  Args:
    function: (floats `[N]`, floats `[N]`) -> float, such as `auc`.
    labels: floats `[N, labels]`.
    predictions: floats `[N, labels]`.
  """
  return float(np.mean([function(labels[:, k], predictions[:, k])
                        for k in range(labels.shape[1])]))


def of_labels(name, labels, predictions):
  """Returns a metric's value for each label; arguments as in `values`."""
  return [_OF_SAMPLES[name](labels[:, k], predictions[:, k])
          for k in range(labels.shape[1])]


class Accumulator(object):
  """Collects the samples of an evaluation, batch by batch."""

  def __init__(self):
    self._labels, self._predictions, self._losses = [], [], []

  def add(self, labels, predictions, loss):
    """Adds a batch.

    Args:
      labels: floats `[N, labels]`.
      predictions: floats `[N, labels]`, or `[N * rows, labels]`: then a sample's labels
        apply to each of its rows.
      loss: float, the batch's mean loss (over ranks, this rank's share of it).
    """
    if len(predictions) != len(labels):
      labels = np.repeat(labels, len(predictions) // len(labels), axis=0)
    self._labels.append(labels)
    self._predictions.append(predictions)
    self._losses.append(float(loss))

  @property
  def batches(self):
    """int, number of batches added."""
    return len(self._losses)

  def arrays(self):
    """Returns (labels, predictions), each `[N, labels]`, and losses `[batches]`."""
    return (np.concatenate(self._labels), np.concatenate(self._predictions),
            np.array(self._losses))


def values(metrics, labels, predictions, losses):
  """Returns [(name, value)] of Metrics.

  Args:
    metrics: list of Metric.
    labels: floats `[N, labels]`.
    predictions: floats `[N, labels]`.
    losses: floats `[batches]`, the mean loss of each batch. AverageLoss is their mean.
  """
  found = []
  for metric in metrics:
    if metric.name == "AverageLoss":
      found.append((metric.name, float(np.mean(losses))))
    else:
      found.append((metric.name, mean_over_labels(_OF_SAMPLES[metric.name], labels,
                                                  predictions)))
  return found

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics of an evaluation, over all of its samples."""

import collections

import numpy as np

# name: "AUC" or "AverageLoss". threshold: float or None: where training may end.
Metric = collections.namedtuple("Metric", ["name", "threshold"])


def parse(text):
  """Returns the Metric of "AUC", "AUC:0.8" or "AverageLoss"."""
  name, _, threshold = text.partition(":")
  return Metric(name, float(threshold) if threshold else None)


def is_reached(metric, value):
  """Returns whether a value is as good as a Metric's threshold asks."""
  if metric.threshold is None or np.isnan(value):
    return False
  if metric.name == "AverageLoss":
    return value <= metric.threshold
  return value >= metric.threshold


def auc(labels, predictions):
  """Returns the area under the ROC curve, exactly; samples of equal predictions are tied.

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
  # Where each run of equal predictions ends.
  ends = np.append(np.flatnonzero(ascending[1:] != ascending[:-1]), len(ascending) - 1)
  positive = np.diff(np.append(0, np.cumsum(labels[order])[ends]))
  negative = np.diff(np.append(-1, ends)) - positive
  below = np.cumsum(negative) - negative
  # Twice the pairs in which the positive is above; a tie is half a pair.
  pairs = (positive * (2 * below + negative)).sum()
  return float(pairs) / (2.0 * positives * negatives)


def mean_auc(labels, predictions):
  """Returns the mean of the AUCs of each label.

  Args:
    labels: floats `[N, labels]`.
    predictions: floats `[N, labels]`.
  """
  return float(np.mean([auc(labels[:, k], predictions[:, k])
                        for k in range(labels.shape[1])]))


class Accumulator(object):
  """Samples of an evaluation, batch by batch."""

  def __init__(self):
    self._labels, self._predictions, self._losses = [], [], []

  def add(self, labels, predictions, loss):
    """Adds a batch: floats `[N, labels]` twice, and its mean loss (over ranks a part)."""
    self._labels.append(labels)
    self._predictions.append(predictions)
    self._losses.append(float(loss))

  @property
  def batches(self):
    """int, how many were added."""
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
    losses: floats `[batches]`, the mean loss of each batch, of which AverageLoss is the
      mean.
  """
  found = []
  for metric in metrics:
    if metric.name == "AUC":
      found.append(("AUC", mean_auc(labels, predictions)))
    else:
      found.append(("AverageLoss", float(np.mean(losses))))
  return found

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exact area under the ROC curve."""

import numpy as np


def auc(labels, scores):
  """Returns the probability that a random positive scores above a random negative.

  Ties count one half. The result is exact, not an approximation by thresholds: the
  same scores give the same bits.

  Args:
    labels: [n], 0 or 1.
    scores: [n], any real numbers.

  Returns:
    float.

  Raises:
    ValueError: shapes differ, a score is NaN, or there is only one class.
  """
  labels, scores = np.asarray(labels), np.asarray(scores)
  if labels.ndim != 1 or labels.shape != scores.shape:
    raise ValueError("labels and scores: expected vectors of one length, got shapes "
                     "%s and %s" % (labels.shape, scores.shape))
  if np.isnan(scores).any():
    raise ValueError("a score is NaN")
  positive = labels > 0
  num_positive = int(positive.sum())
  num_negative = labels.size - num_positive
  if not num_positive or not num_negative:
    raise ValueError("AUC needs both classes, got %d positives and %d negatives" %
                     (num_positive, num_negative))
  _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
  # Equal scores share the mean of their ranks.
  ranks = np.cumsum(counts) - (counts - 1) / 2.0
  rank_sum = ranks[inverse][positive].sum()
  return float((rank_sum - num_positive * (num_positive + 1) / 2.0) /
               (num_positive * num_negative))

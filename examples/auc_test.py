# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
import numpy as np

import auc


class AucTest(absltest.TestCase):

  def test_equals_counting_pairs(self):
    rng = np.random.RandomState(0)
    labels = rng.randint(0, 2, 200)
    scores = np.round(rng.normal(labels, 2.0), 1)  # rounded, so that there are ties
    pairs = [(p > n) + 0.5 * (p == n)
             for p in scores[labels == 1] for n in scores[labels == 0]]
    self.assertAlmostEqual(auc.auc(labels, scores), np.mean(pairs), places=12)

  def test_perfect_reversed_and_constant(self):
    labels = [0, 0, 1, 1]
    self.assertEqual(auc.auc(labels, [1, 2, 3, 4]), 1.0)
    self.assertEqual(auc.auc(labels, [4, 3, 2, 1]), 0.0)
    self.assertEqual(auc.auc(labels, [7, 7, 7, 7]), 0.5)

  def test_errors(self):
    with self.assertRaisesRegex(ValueError, "both classes, got 2 positives"):
      auc.auc([1, 1], [0.1, 0.2])
    with self.assertRaisesRegex(ValueError, "vectors of one length"):
      auc.auc([1, 0], [0.1])
    with self.assertRaisesRegex(ValueError, "NaN"):
      auc.auc([1, 0], [0.1, float("nan")])


if __name__ == "__main__":
  absltest.main()

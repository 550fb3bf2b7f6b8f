# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of histogram."""

from absl.testing import absltest
import numpy as np

from embedding_variable.tools import histogram


def _counts(bins):
  return [(b.label, b.count) for b in bins]


class HistogramTest(absltest.TestCase):

  def test_frequency_bins_double(self):
    values = np.array([1, 1, 2, 3, 4, 9], np.int64)
    self.assertEqual(
        _counts(histogram.of_frequencies(values)),
        [("1", 2), ("2-3", 2), ("4-7", 1), ("8-15", 1)])

  def test_frequency_zero_has_a_bin_of_its_own(self):
    bins = histogram.of_frequencies(np.array([0, 0, 1], np.int64))
    self.assertEqual(_counts(bins), [("0", 2), ("1", 1)])

  def test_every_value_is_counted_once(self):
    random = np.random.RandomState(0)
    for _ in range(20):
      values = random.randint(0, random.randint(1, 10**6), size=50).astype(np.int64)
      for bins in (histogram.of_frequencies(values), histogram.of_versions(values)):
        self.assertEqual(sum(b.count for b in bins), 50)
        for b in bins:
          self.assertEqual(b.count, np.sum((values >= b.low) & (values <= b.high)))

  def test_rows_that_were_never_updated_come_first(self):
    bins = histogram.of_versions(np.array([5, -1, 5, -1, -1], np.int64))
    self.assertEqual(_counts(bins), [("never", 3), ("5", 2)])

  def test_versions_far_apart_have_few_bins(self):
    bins = histogram.of_versions(np.array([0, 2**62], np.int64))
    self.assertLessEqual(len(bins), 12)
    self.assertEqual((bins[0].low, bins[-1].high), (0, 2**62))

  def test_nothing_gives_no_bins(self):
    nothing = np.array([], np.int64)
    self.assertEmpty(histogram.of_frequencies(nothing))
    self.assertEmpty(histogram.of_versions(nothing))
    self.assertEmpty(histogram.lines([]))

  def test_lines_show_the_smallest_count_too(self):
    values = np.array([1] * 1000 + [2], np.int64)
    first, second = histogram.lines(histogram.of_frequencies(values))
    self.assertEqual(first, "    1  1,000  " + "#" * 40)
    self.assertEqual(second, "  2-3      1  #")


if __name__ == "__main__":
  absltest.main()

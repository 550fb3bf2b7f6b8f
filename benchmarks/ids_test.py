# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
import numpy as np

import defaults
import ids


class IdsTest(absltest.TestCase):

  def test_zipf_law(self):
    rng = np.random.RandomState(0)
    draws = ids.draw(rng, "zipf", 100, [200000], 1.05)
    counts = np.sort(np.bincount(draws, minlength=100))[::-1]
    expected = np.arange(1, 101) ** -1.05
    expected *= len(draws) / expected.sum()
    np.testing.assert_allclose(counts[:20], expected[:20], rtol=0.1)

  def test_hot_rows_are_scattered(self):
    draws = ids.draw(np.random.RandomState(0), "zipf", 1000, [10000], 1.05)
    hottest = np.argsort(np.bincount(draws, minlength=1000))[::-1][:5]
    self.assertGreater(np.ptp(hottest), 50)

  def test_uniform_covers_the_rows(self):
    draws = ids.draw(np.random.RandomState(0), "uniform", 50, [5000], 1.05)
    self.assertEqual(set(draws.tolist()), set(range(50)))

  def test_more_ids_of_each(self):
    first = np.array([[3, 5], [3, 99]])
    found = ids.more_of_each(first, 50, 100, 7)
    self.assertEqual((found.shape, found.dtype), ((2, 2, 50), np.int64))
    np.testing.assert_array_equal(found[..., 0], first)
    np.testing.assert_array_equal(found[0, 0], found[1, 0])
    # 49 uniform ids of 100 rows: about 39 different ones.
    self.assertBetween(len(set(found[1, 1].tolist())), 30, 48)
    self.assertTrue(((0 <= found) & (found < 100)).all())
    self.assertTrue((found != ids.more_of_each(first, 50, 100, 8)).any())
    np.testing.assert_array_equal(ids.more_of_each(first, 1, 100, 7)[..., 0], first)

  def test_unknown_distribution(self):
    with self.assertRaisesRegex(ValueError, "got 'normal'"):
      ids.draw(np.random.RandomState(0), "normal", 5, [5], 1.0)

  def test_aligned_memory(self):
    for shape in ([3], [2, 5], [1000, 7]):
      array = ids.aligned(shape, np.int64)
      self.assertEqual((list(array.shape), array.dtype), (shape, np.int64))
      self.assertEqual(array.ctypes.data % 64, 0)
      array[:] = -1
      self.assertEqual(array.sum(), -np.prod(shape))

  def test_batches_are_reproducible_and_differ_by_table(self):
    workload = defaults.Workload("zipf", 2, 16, tables=3, batch=8, rows=40)
    first = ids.batches(workload, 4, seed=1, exponent=1.05)
    self.assertEqual(first.shape, (4, 3, 16))
    np.testing.assert_array_equal(first, ids.batches(workload, 4, 1, 1.05))
    self.assertFalse(np.array_equal(first[:, 0], first[:, 1]))
    self.assertFalse(np.array_equal(first, ids.batches(workload, 4, 2, 1.05)))
    self.assertTrue(np.all((first >= 0) & (first < 40)))


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0

import os
import tempfile

from absl.testing import absltest

import gpu_chart

_TABLE = """
| a | b |
| --- | --- |
| 1 | 2 |

| what | G keys/s | project's goal | HierarchicalKV |
| --- | --- | --- | --- |
| find | 27.04 | 15.0 | 7.3 |
| erase | 12.44 | - | - |
| evict | **2.13** | 2.2 | - |

| what | G keys/s | project's goal | HierarchicalKV |
| --- | --- | --- | --- |
| another table | 1 | 1 | 1 |
"""


class GpuChartTest(absltest.TestCase):

  def test_rows_with_a_goal(self):
    self.assertEqual(
        gpu_chart.table_bars(_TABLE),
        [("find", 27.04, 15., 7.3), ("evict", 2.13, 2.2, None)])

  def test_a_page_without_the_table(self):
    with self.assertRaisesRegex(ValueError, "no table with the columns what, G keys/s"):
      gpu_chart.table_bars("| what | project's goal |\n| --- | --- |\n| find | 1 |\n")

  def test_chart_is_a_png(self):
    path = os.path.join(tempfile.mkdtemp(), "chart.png")
    gpu_chart.chart(gpu_chart.table_bars(_TABLE), path)
    with open(path, "rb") as f:
      self.assertEqual(f.read(4), b"\x89PNG")

  def test_the_page_is_read(self):
    results = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")
    with open(os.path.join(results, "gpu_table.md")) as f:
      self.assertGreater(len(gpu_chart.table_bars(f.read())), 20)


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks that every variant of the benchmark computes the same result."""

import os
import tempfile

from absl import app
from absl import flags
from absl.testing import absltest
from absl.testing import flagsaver
from absl.testing import parameterized
import numpy as np

import defaults
import ids
import new_rows
import stock_vs_ev


class StockVsEvTest(parameterized.TestCase):

  def _measure(self, variant, distribution, **kwargs):
    workload = defaults.Workload(
        distribution, 3, 5, tables=2, batch=8, rows=40, **kwargs)
    return stock_vs_ev.measure(
        variant, workload, num_batches=2, seed=1, threads=0, warmup_steps=1,
        min_steps=4, min_seconds=0)

  @parameterized.parameters("zipf", "uniform")
  def test_variants_agree(self, distribution):
    results = [self._measure(v, distribution) for v in defaults.ALL_VARIANTS]
    for result in results:
      self.assertEqual(result["first_loss"], 2 * 2 * 8 * 3 * 5)
      np.testing.assert_allclose(
          result["last_loss"], results[0]["last_loss"], rtol=1e-5)
      self.assertLess(result["last_loss"], result["first_loss"])
      self.assertEqual(result["step"]["steps"], 4)

  def test_the_total_is_the_same_loss(self):
    each = self._measure(defaults.EV_SOK, "zipf")
    total = self._measure(defaults.EV_SOK, "zipf", tower=defaults.TOTAL_TOWER)
    self.assertEqual(total["first_loss"], each["first_loss"])
    self.assertEqual(total["last_loss"], each["last_loss"])

  def test_rows_on_an_ssd_compute_the_same(self):
    in_memory = self._measure(defaults.EV_SOK, "zipf")
    with flagsaver.flagsaver(storage="ssd", memory_part=0.1,
                             storage_path=tempfile.mkdtemp()):
      on_ssd = self._measure(defaults.EV_SOK, "zipf")
      self.assertTrue(os.path.isdir(
          os.path.join(flags.FLAGS.storage_path, "table_01")))
    self.assertEqual(on_ssd["last_loss"], in_memory["last_loss"])
    with flagsaver.flagsaver(storage="ssd"):
      with self.assertRaisesRegex(app.UsageError, "storage_path"):
        self._measure(defaults.EV_SOK, "zipf")

  def test_a_part_of_the_rows_is_in_gpu_memory(self):
    workload = defaults.Workload("zipf", 3, 5, tables=2, batch=8, rows=40)
    with flagsaver.flagsaver(storage="hbm_dram", memory_part=0.25):
      option = stock_vs_ev.storage_option("table_00", workload)
    row_bytes = 2 * 4 * workload.dim
    self.assertEqual(option.storage_size[0], 10 * row_bytes)

  def test_policies_change_no_loss(self):
    plain = self._measure(defaults.EV_SOK, "zipf")
    with flagsaver.flagsaver(policy="step_evict"):
      versions = self._measure(defaults.EV_SOK, "zipf")
    with flagsaver.flagsaver(policy="counter"):
      counted = self._measure(defaults.EV_SOK, "zipf")
    self.assertEqual(versions["first_loss"], plain["first_loss"])
    self.assertEqual(versions["last_loss"], plain["last_loss"])
    # Before the first step each key occurred once, and none has a row.
    self.assertEqual(counted["first_loss"], 0)
    self.assertGreater(counted["last_loss"], 0)

  @parameterized.parameters(defaults.EV_SOK, defaults.EV_NN)
  def test_new_rows_are_new_once(self, variant):
    workload = defaults.Workload("uniform", 3, 5, tables=2, batch=8)
    batches = new_rows.new_ids(8, workload)
    self.assertLen(np.unique(batches), batches.size)
    result = new_rows.measure(variant, workload, steps=8)
    self.assertEqual(sorted(result), ["born", "present"])
    self.assertGreater(min(result["born"][0], result["present"][0]), 0)
    self.assertIn("rows born", new_rows.line(variant, workload, result))

  @flagsaver.flagsaver(new_part=0.25)
  def test_a_part_of_the_rows_is_new(self):
    workload = defaults.Workload("uniform", 1, 5, tables=2, batch=4000)
    first, second = new_rows.new_ids(2, workload)
    self.assertAlmostEqual(0.25, np.mean(first >= 1 << 40), delta=0.03)
    both_old = (first < 1 << 40) & (second < 1 << 40)
    self.assertGreater(np.sum(both_old), 4000)
    self.assertTrue(np.all(first[both_old] == second[both_old]))

  def test_unique_ids(self):
    result = self._measure(defaults.STOCK, "uniform")
    workload = defaults.Workload("uniform", 3, 5, tables=2, batch=8, rows=40)
    batch = ids.batches(workload, 2, 1, defaults.ZIPF_EXPONENT)[0]
    expected = np.mean([len(set(table.tolist())) for table in batch])
    self.assertAlmostEqual(result["unique_ids_per_table"], expected, places=1)

  def test_op_times_are_by_type_and_sorted(self):
    ops = self._measure(defaults.EV_SOK, "zipf")["op_ms"]
    self.assertIn("EvLookupSparse", ops)
    self.assertEqual(list(ops.values()), sorted(ops.values(), reverse=True))

  @parameterized.parameters(defaults.STOCK, defaults.EV_SOK)
  def test_dlrm_tower_trains(self, variant):
    result = self._measure(variant, "zipf", tower=defaults.DLRM_TOWER)
    self.assertLess(result["last_loss"], result["first_loss"])

  def test_timeline(self):
    path = os.path.join(tempfile.mkdtemp(), "step.json")
    workload = defaults.Workload("zipf", 1, 4, tables=1, batch=4, rows=10)
    stock_vs_ev.measure(defaults.STOCK, workload, 2, 1, 0, 1, 2, 0, path)
    self.assertGreater(os.path.getsize(path), 100)

  def test_default_workloads(self):
    workloads = defaults.training_workloads()
    names = [w.name for w in workloads]
    self.assertLen(set(names), 9)
    self.assertIn("uniform_hot10_dim64", names)
    # The tables and slots of every workload fit the same memory.
    for w in workloads:
      self.assertLess(w.tables * w.rows_per_table * w.dim * 8, 7e9)


if __name__ == "__main__":
  absltest.main()

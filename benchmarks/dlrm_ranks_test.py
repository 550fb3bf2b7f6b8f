# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks that dlrm_ranks.py runs and trains, with tiny sizes on the CPU."""

import json
import os
import re

from absl.testing import absltest

import dlrm_ranks_table
import horovod_job
import ranks as ranks_of_jobs


class DlrmRanksTest(absltest.TestCase):

  def _run(self, ranks, *arguments, horovodrun=False):
    worker = os.path.join(os.path.dirname(os.path.abspath(dlrm_ranks_table.__file__)),
                          "dlrm_ranks.py")
    run = horovod_job.run if horovodrun else ranks_of_jobs.run
    job = run(
        ranks, worker, "--device=/cpu:0", "--storage=dram", "--exchange=horovod",
        "--batch=32", "--dim=4", "--tables=5", "--rows=100", "--steps=20",
        "--warmup_steps=1", "--bottom=8", "--top=16,8", *arguments)
    self.assertEqual(job.returncode, 0, job.output)
    return re.findall(r"(\{.*\})", job.output)

  def test_runs_and_trains(self):
    lines = self._run(1) + self._run(2, horovodrun=True)
    halves = [json.loads(line) for line in self._run(1, "--dtype=float16")]
    self.assertEqual([r["dtype"] for r in halves], ["float16"] * 3)
    for result in halves:
      self.assertLess(result["loss"][1], result["loss"][0], result)
    results = [json.loads(line) for line in lines]
    self.assertEqual([(r["ranks"], r["graph"]) for r in results],
                     [(n, g) for n in (1, 2) for g in ("whole", "dense", "sparse")])
    for result in results:
      self.assertGreater(result["step_ms"], 0.)
      self.assertLess(result["loss"][1], result["loss"][0], result)
    page = dlrm_ranks_table.table(lines)
    self.assertLen(page.split("\n"), 4)
    self.assertRegex(page, r"\| 32 \| 2 \| horovod \| [\d.]+ \| [\d.]+ \| \d+ % \|")
    self.assertEmpty(dlrm_ranks_table.losses(lines))

  def test_memory_of_ids(self):
    lines = sum([self._run(2, "--graphs=sparse", "--ids=" + ids)
                 for ids in ("here", "fetched", "there")], [])
    self.assertEqual([json.loads(line)["ids"] for line in lines],
                     ["here", "fetched", "there"])
    self.assertIn("| 32 | 2 | horovod, ids there |", dlrm_ranks_table.table(lines))
    said, = dlrm_ranks_table.losses(lines)
    self.assertStartsWith(said, "sparse, 32 samples, 2 GPUs, horovod: losses are the same")
    other = json.loads(lines[2])
    other["loss"][1] += 1.
    said, = dlrm_ranks_table.losses(lines[:2] + [json.dumps(other)])
    self.assertIn("losses DIFFER: fetched [", said)

  def test_policies(self):
    lines = sum([self._run(ranks, "--graphs=sparse", "--policy=" + policy)
                 for policy in ("counter", "step_evict") for ranks in (1, 2)], [])
    page = dlrm_ranks_table.table(lines)
    self.assertRegex(page, r"\| 32 \| 1 \| –, counter \|")
    # Before the first step each key occurred once, so the filter admitted none.
    self.assertEqual([json.loads(line)["loss"][0] == 0 for line in lines],
                     [True, True, False, False])
    # The scaling is relative to one rank with the same policy.
    self.assertRegex(page, r"\| 32 \| 2 \| horovod, step_evict .* \d+ % \|")

  def test_several_batches(self):
    lines = self._run(1, "--graphs=dense,sparse", "--batch=16,32",
                      "--distribution=uniform", "--row_wise")
    self.assertEqual([(r["batch"], r["graph"]) for r in map(json.loads, lines)],
                     [(b, g) for b in (16, 32) for g in ("dense", "sparse")])
    for result in map(json.loads, lines):
      self.assertTrue(result["row_wise"])
      self.assertLess(result["loss"][1], result["loss"][0], result)
    self.assertRegex(dlrm_ranks_table.table(lines), r"\| 32 \| 1 \| –, uniform \|")

  def test_both_interactions(self):
    ours, matmul = [
        json.loads(self._run(1, "--graphs=dense", "--interaction=" + interaction)[0])
        for interaction in ("ours", "matmul")]
    self.assertEqual(matmul["interaction"], "matmul")
    # Not equal: initial values depend on the number of ops of a graph.
    for one, other in zip(ours["loss"], matmul["loss"]):
      self.assertAlmostEqual(one, other, delta=.03)

  def test_table(self):
    def line(graph, ranks, ms, storage="hbm"):
      return json.dumps({"graph": graph, "ranks": ranks, "batch": 8, "exchange": "nccl",
                         "storage": storage, "step_ms": ms,
                         "samples_per_second": 8e3 * ranks / ms})

    page = dlrm_ranks_table.table([
        line("whole", 1, 4.), line("dense", 1, 3.), line("whole", 2, 5.),
        line("whole", 1, 8., "hbm_dram")])
    self.assertEqual(page.split("\n")[2:], [
        "| 8 | 1 | – | 4.00 | 0.00 | – | – | – | 3.00 | – |",
        "| 8 | 2 | nccl | 5.00 | 0.00 | 80 % | – | – | – | – |",
        "| 8 | 1 | –, hbm_dram | 8.00 | 0.00 | – | – | – | – | – |"])


if __name__ == "__main__":
  absltest.main()

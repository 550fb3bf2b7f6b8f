# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the benchmark of lookups over ranks: both kinds of lookup train alike."""

import json
import os
import re
import subprocess
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import flagsaver

import exchange


class ExchangeTest(absltest.TestCase):

  def _run(self, *arguments):
    worker = os.path.join(os.path.dirname(os.path.abspath(exchange.__file__)),
                          "exchange_worker.py")
    process = subprocess.run(
        [sys.executable, "-m", "horovod.runner.launch", "-np", "2", "-H", "localhost:2",
         sys.executable, worker, "--hotness=2", "--dim=4", "--tables=3", "--batch=16",
         "--steps=2", "--warmup_steps=1"] + list(arguments),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2"), universal_newlines=True)
    self.assertEqual(process.returncode, 0, process.stdout)
    return json.loads(re.search(r"(\{.*\})", process.stdout).group(1))

  def test_both_ways_train_the_same(self):
    naive, ours = self._run("--variant=naive"), self._run()
    self.assertAlmostEqual(naive["loss"], ours["loss"], delta=1e-4 * naive["loss"])
    # 3 tables, each with 16 lengths and 32 ids of 8 bytes, and twice 16 sums of 4 floats.
    self.assertEqual(naive["bytes"], 3 * (8 * (16 + 32) + 2 * 16 * 4 * 4))
    # At most all ids, each with its row and its gradient, and a header.
    self.assertGreater(ours["bytes"], 0)
    self.assertLessEqual(ours["bytes"], 8 * 4 + 3 * 32 * (8 + 2 * 4 * 4))

  def test_page(self):
    results = [("naive", {"bytes": 4e6, "step_ms": 10.}),
               ("ours", {"bytes": 1e6, "step_ms": 5.})]
    page = exchange.page([(1, 16, results)], 2, 8, {"commit": "c", "cpu": "x"}, "run it")
    self.assertIn("| 1 | 16 | ours | 1.00 | 4.00x | 5.0 | 2.00x |", page)
    self.assertIn("- commit: c", page)
    self.assertIn("`run it`", page)

  def test_writes_its_page(self):
    out = self.create_tempdir().full_path
    jobs = []

    def run_job(hotness, dim, arguments):
      jobs.append((hotness, dim, arguments))
      return {"bytes": 1e6, "step_ms": 5.}

    with flagsaver.flagsaver(out=out, rounds=1, dims=["16"]), \
        mock.patch.object(exchange, "run_job", run_job):
      exchange.main(["exchange.py"])
    # Jobs with one and with ten ids per sample.
    self.assertLen(jobs, 2 * len(exchange.variants()))
    with open(os.path.join(out, "exchange.md")) as f:
      text = f.read()
    self.assertIn("| 10 | 16 | naive all-gather | 1.00 | 1.00x | 5.0 | 1.00x |", text)
    self.assertIn("- command: `python benchmarks/exchange.py", text)

  def test_median_job(self):
    jobs = [{"step_ms": s} for s in (3., 1., 2.)]
    self.assertEqual(exchange.median_job(jobs)["step_ms"], 2.)


if __name__ == "__main__":
  absltest.main()

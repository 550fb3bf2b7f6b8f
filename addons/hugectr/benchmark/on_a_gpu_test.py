# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the program for a GPU runs without one, on very little data."""

import os
import subprocess
import sys

from absl.testing import absltest
from absl.testing import flagsaver

import on_a_gpu
from hugectr.config import model


class OnAGpuTest(absltest.TestCase):

  def test_prints_a_line_per_model(self):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "addons/hugectr/benchmark/on_a_gpu.py",
         "--models=criteo_parquet", "--steps=4", "--batch_size=20", "--eval_samples=50"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    self.assertEqual(done.returncode, 0, done.stderr)
    cells = done.stdout.splitlines()[-1].split(" | ")
    self.assertEqual(cells[0], "| criteo_parquet")
    # Without a GPU all three columns are the CPU's.
    self.assertLen(set(cells[1:4]), 1)
    self.assertLen(cells, 7)

  def test_the_examples_model_is_a_configuration(self):
    with flagsaver.flagsaver(dim=8, steps=40):
      configuration = on_a_gpu._example_model("folder")
    found = model.parse(configuration)
    widths = [str(l.out_shapes[0]) for l in found.layers if l.type == "InnerProduct"]
    self.assertEqual(widths, ["[batch, %d]" % w for w in (64, 8, 256, 128, 1)])
    self.assertEqual(configuration["solver"]["display"], 10)


if __name__ == "__main__":
  absltest.main()

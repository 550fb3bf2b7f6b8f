# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks of TensorFlow 2.x, with sizes too small to measure anything."""

import os
import re
import subprocess
import sys

from absl.testing import absltest
from absl.testing import parameterized

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _run(program, *arguments):
  return subprocess.check_output(
      [sys.executable, os.path.join(_ROOT, "benchmarks", program + ".py")] + list(arguments),
      env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)), text=True)


class BenchmarksTest(parameterized.TestCase):

  def test_step(self):
    text = _run("tensorflow_2_step", "--tables=2", "--batch=16", "--rounds=1", "--steps=2")
    for mode in ("graph", "tf.function", "eager"):
      self.assertRegex(text, re.escape(mode) + r": median [\d.]+ ms, best [\d.]+ ms")

  @parameterized.parameters(
      ((),), (("--xla",),), (("--precision=mixed_bfloat16",),),
      (("--xla", "--precision=mixed_float16"),))
  def test_dlrm(self, more):
    text = _run("tensorflow_2_dlrm", "--device=/cpu:0", "--storage=dram", "--tables=2",
                "--dim=4", "--rows=50", "--batch=256", "--bottom=8", "--top=8",
                "--warmup_steps=0", "--steps=40", *more)
    first, last = re.search(r"loss ([\d.]+) to ([\d.]+)", text).groups()
    self.assertLess(float(last), float(first))


if __name__ == "__main__":
  absltest.main()

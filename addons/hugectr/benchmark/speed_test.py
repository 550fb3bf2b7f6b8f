# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the measuring program runs, on very little data."""

import os
import subprocess
import sys

from absl.testing import absltest


class SpeedTest(absltest.TestCase):

  def test_prints_a_line_per_question(self):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "addons/hugectr/benchmark/speed.py",
         "--config=addons/hugectr/example/dcn.json", "--samples=300", "--batch_size=50",
         "--steps=2", "--rounds=2", "--keys=20"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        universal_newlines=True, env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertEqual([line.split(":")[0] for line in done.stdout.splitlines()],
                     ["Norm", "Norm, checksums", "Raw, float32", "Raw, int32", "Parquet",
                      "step"])


if __name__ == "__main__":
  absltest.main()

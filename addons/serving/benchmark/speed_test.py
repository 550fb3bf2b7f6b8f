# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks of the server with small sizes."""

import os
import shutil
import subprocess
import sys
import unittest

from absl.testing import absltest


class SpeedTest(absltest.TestCase):

  def run_program(self, name, *flags):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    return subprocess.check_output(
        [sys.executable, "-W", "ignore", program] + list(flags),
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path),
                 TMPDIR=self.create_tempdir().full_path), universal_newlines=True)

  @unittest.skipIf(shutil.which("h2load") is None, "h2load is missing (package nghttp2-client)")
  def test_speed(self):
    output = self.run_program(
        "speed.py", "--tables=2", "--rows=100", "--dim=4", "--batch=8", "--seconds=1",
        "--clients=2", "--num_reloads=2", "--reload_seconds=1")
    for line in (r"session\.run +batch +8 +\d", r"gRPC +batch +8 .*% of session\.run",
                 r"REST +batch +8 +\d", r"gRPC +batch +1 +\d", r"REST, half rate +batch +1 +\d",
                 r"gRPC, +2 reloads .*p99\.9 +\d"):
      self.assertRegex(output, line)

  def test_freshness(self):
    output = self.run_program("freshness.py", "--rows=1000", "--dim=4", "--changed=50",
                              "--every=0.3", "--deltas=3", "--batch=16")
    self.assertRegex(output, r"age of a step .* median \d+\.\d\d s, most \d")
    self.assertRegex(output, r"training step: median \d")


if __name__ == "__main__":
  absltest.main()

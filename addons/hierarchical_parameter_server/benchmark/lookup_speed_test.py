# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the lookup benchmark, which first compares rows."""

import os
import subprocess
import sys
from unittest import mock

from absl.testing import absltest

import on_gpu


class LookupSpeedTest(absltest.TestCase):

  def run_program(self, *flags):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lookup_speed.py")
    return subprocess.check_output(
        [sys.executable, "-W", "ignore", program, "--rows=3000", "--width=8"] + list(flags),
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path),
                 TMPDIR=self.create_tempdir().full_path), universal_newlines=True)

  def test_rows_are_the_same(self):
    for kind in ("parallel_hash_map", "multi_process_hash_map"):
      self.assertIn("the same rows", self.run_program("--check", "--type=" + kind))
    for row_type in ("float16", "uint8"):
      self.assertIn("the same rows", self.run_program("--check", "--row_type=" + row_type))

  def test_it_measures(self):
    output = self.run_program("--batches=32,1024", "--seconds=0.01")
    for stream in ("repeated", "zipf1.05", "zipf1.2", "uniform"):
      self.assertRegex(output, stream + r" +1024 +\d")

  def test_a_variable_that_tensorflow_cannot_fill_on_a_gpu(self):
    flags = mock.Mock(ways=["gpu", "cpu"], rows=2**24, width=128)
    with self.assertRaisesRegex(ValueError, "--ways: expected no gpu with 16777216 x 128 floats"):
      on_gpu.run("", "", [32], flags, None)


if __name__ == "__main__":
  absltest.main()

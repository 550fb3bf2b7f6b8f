# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the start-up benchmark, whose processes compare rows."""

import os
import subprocess
import sys

from absl.testing import absltest
import numpy as np


class StartUpTest(absltest.TestCase):

  def run_program(self, *flags):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "start_up.py")
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", program] + list(flags),
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path),
                 TMPDIR=self.create_tempdir().full_path), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, universal_newlines=True)

  def test_it_measures(self):
    for flag in ("--written=50", "--whole"):
      process = self.run_program("--rows=3000", "--width=8", "--ids=1,32", "--runs=1", flag)
      output = process.communicate()[0]
      self.assertEqual(process.returncode, 0, output)
      self.assertRegex(output, r"\n +32 +0 +\d+\.\d{3} +\d+\.\d{3}")

  def test_a_wrong_row_is_an_error(self):
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import start_up  # pylint: disable=g-import-not-at-top
    folder = self.create_tempdir().full_path
    table = os.path.join(folder, "t")
    start_up.FLAGS(["start_up", "--rows=100", "--width=8", "--whole"])
    start_up.write_table(table)
    config = start_up.write_config(folder)
    np.save(config + ".npy", [7, 99])
    process = self.run_program("--serve=" + config, "--width=8")
    output = process.communicate()[0]
    self.assertEqual(process.returncode, 0, output)
    with open(os.path.join(table, "emb_vector"), "r+b") as f:
      f.seek(99 * 8 * 4)
      f.write(b"\0\0\0\0")
    process = self.run_program("--serve=" + config, "--width=8")
    self.assertIn("AssertionError", process.communicate()[0])
    self.assertNotEqual(process.returncode, 0)


if __name__ == "__main__":
  absltest.main()

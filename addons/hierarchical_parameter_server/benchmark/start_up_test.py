# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the start-up benchmark, whose processes compare rows."""

import io
import os
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import flagsaver
import numpy as np

import preloaded
import start_up


class StartUpTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super(StartUpTest, cls).setUpClass()
    if not start_up.FLAGS.is_parsed():
      start_up.FLAGS(["start_up"])
    cls.python = preloaded.Interpreter(["hierarchical_parameter_server"])

  @classmethod
  def tearDownClass(cls):
    cls.python.close()
    super(StartUpTest, cls).tearDownClass()

  def run_program(self, *flags):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "start_up.py")
    return self.python.run(
        [program] + list(flags),
        dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path),
             TMPDIR=self.create_tempdir().full_path))

  def check_output(self, words, env, universal_newlines):
    """Stands for subprocess.check_output of a Python program."""
    self.assertEqual((words[:3], universal_newlines),
                     ([sys.executable, "-W", "ignore"], True))
    done = self.python.run(words[3:], env)
    self.assertEqual(done.returncode, 0, done.stdout)
    return done.stdout

  def test_it_measures(self):
    row = r"\n +32 +0 +\d+\.\d{3} +\d+\.\d{3}"
    # The program starts fresh processes.
    done = self.run_program("--rows=3000", "--width=8", "--runs=1", "--written=50",
                            "--ids=32")
    self.assertEqual(done.returncode, 0, done.stdout)
    self.assertRegex(done.stdout, row)
    # And here processes that have imported TensorFlow.
    for more in (dict(written=50), dict(whole=True)):
      with flagsaver.flagsaver(rows=3000, width=8, runs=1, ids=["1", "32"], **more), \
          mock.patch.object(start_up.subprocess, "check_output", self.check_output), \
          mock.patch("sys.stdout", new_callable=io.StringIO) as out:
        start_up.main(["start_up"])
      self.assertRegex(out.getvalue(), row)

  def test_a_wrong_row_is_an_error(self):
    folder = self.create_tempdir().full_path
    table = os.path.join(folder, "t")
    with flagsaver.flagsaver(rows=100, width=8, whole=True):
      start_up.write_table(table)
      config = start_up.write_config(folder)
    np.save(config + ".npy", [7, 99])
    done = self.run_program("--serve=" + config, "--width=8")
    self.assertEqual(done.returncode, 0, done.stdout)
    with open(os.path.join(table, "emb_vector"), "r+b") as f:
      f.seek(99 * 8 * 4)
      f.write(b"\0\0\0\0")
    done = self.run_program("--serve=" + config, "--width=8")
    self.assertIn("AssertionError", done.stdout)
    self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The commands, in one process and as a program."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import urllib.request

from absl.testing import absltest
import numpy as np

import hierarchical_parameter_server as hps
from hierarchical_parameter_server import testing
from hierarchical_parameter_server.commands import main
from hierarchical_parameter_server.commands import profiling


def run(*argv):
  """Returns (exit code, output, errors)."""
  out, err = io.StringIO(), io.StringIO()
  with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
    code = main.main([str(a) for a in argv])
  return code, out.getvalue(), err.getvalue()


class CommandsTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    hps.stop()
    self.folder = self.create_tempdir().full_path
    self.rows = np.arange(2000, dtype=np.float32).reshape([500, 4])
    testing.write_table(os.path.join(self.folder, "t"), np.arange(500) - 3, self.rows)

  def tearDown(self):
    hps.stop()
    super().tearDown()

  def config(self, name="ps.json", **more):
    return testing.write_config(
        os.path.join(self.folder, name),
        [testing.model("m", ["t"], [4], [-1.], **more)])

  def test_check(self):
    code, out, _ = run("check", self.config(hit_rate_threshold=0.9))
    self.assertEqual(code, 0)
    self.assertIn("note: models[0].hit_rate_threshold", out)
    self.assertRegex(out, r"m +table0 +4 +500 +11\.7 KiB")
    self.assertIn("0 errors, 1 notes", out)
    code, out, _ = run("check", self.config(gpucacher=1))
    self.assertEqual(code, 1)
    self.assertIn("error: ", out)
    self.assertIn("models[0].gpucacher: unknown key; was 'gpucache' meant?", out)

  def test_lookup(self):
    code, out, _ = run("lookup", self.config(), "m", "table0", "--", "-3", "9999", "0")
    self.assertEqual(code, 0)
    self.assertEqual(out.splitlines(), [
        "-3\t0 1 2 3", "9999\t-1 -1 -1 -1", "0\t12 13 14 15",
        "1 of 3 keys have the default value"])
    code, _, err = run("lookup", self.config(), "m", "tabel", "1")
    self.assertEqual(code, 2)
    self.assertIn("model 'm' has no table 'tabel', but table0", err)
    code, _, err = run("lookup", os.path.join(self.folder, "none.json"), "m", "0", "1")
    self.assertEqual(code, 2)
    self.assertIn("none.json", err)

  def test_load(self):
    code, out, _ = run("load", self.config())
    self.assertEqual(code, 0)
    self.assertRegex(out, r"hps_et\.m\.table0: volatile tier: 500 rows, ")

  def test_profile(self):
    for stream in ("zipf", "uniform", "repeated"):
      code, out, err = run("profile", self.config(), "--stream", stream, "--batch", 64,
                           "--iterations", 20, "--threads", 2, "--chart")
      self.assertEqual(code, 0, err)
      self.assertIn("2 callers, 40 lookups", out)
      self.assertIn("volatile 100.00 %  persistent 0.00 %  default 0.00 %", out)
      self.assertIn(" us #", out)
    code, _, err = run("profile", self.config(), "--exponent", 1)
    self.assertEqual(code, 2)
    self.assertIn("--exponent: want more than 1, got 1", err)

  def test_zipf_is_as_steep_as_it_says(self):
    drawn = profiling.zipf(np.random.RandomState(1), 10**6, 1.2, 200000)
    self.assertEqual(drawn.min(), 0)
    self.assertLess(drawn.max(), 10**6)
    # Of the continuous distribution: the share of [1, 2), and of the first tenth.
    top = 1 - (10**6 + 1.)**-0.2
    self.assertAlmostEqual((drawn == 0).mean(), (1 - 2**-0.2) / top, delta=0.01)
    self.assertAlmostEqual((drawn < 10**5).mean(), (1 - (10**5 + 1.)**-0.2) / top,
                           delta=0.01)

  def test_convert(self):
    np.arange(5, dtype=np.int64).tofile(os.path.join(self.folder, "v_keys.file"))
    np.zeros(10, np.float32).tofile(os.path.join(self.folder, "v_values.file"))
    code, out, err = run("convert", "legacy", self.folder, self.folder)
    self.assertEqual((code, out), (0, "v: 5 rows of 2 floats\n"), err)
    code, _, err = run("convert", "checkpoint", self.folder + "/none", self.folder)
    self.assertEqual(code, 2)
    self.assertIn("cannot be read as a checkpoint", err)

  def test_serve_metrics_as_a_program(self):
    program = subprocess.Popen(
        [sys.executable, "-m", "hierarchical_parameter_server", "serve-metrics",
         self.config(), "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        universal_newlines=True)
    try:
      lines = [program.stdout.readline() for _ in range(2)]
      self.assertRegex(lines[0], r"^loaded in ")
      text = urllib.request.urlopen(lines[1].strip()).read().decode()
      self.assertIn('hps_rows{model="m",table="table0",tier="volatile"} 500', text)
    finally:
      program.send_signal(signal.SIGINT)
      self.assertEqual(program.wait(), 0)
      program.stdout.close()


if __name__ == "__main__":
  absltest.main()

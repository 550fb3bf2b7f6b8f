# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0

import os
import tempfile
from unittest import mock

from absl.testing import absltest
from absl.testing import flagsaver

import defaults
import engine_programs
import machine
import report
import run


def _run(workload, variant, step_ms, input_ms=1.0):
  return {
      "variant": variant, "workload": workload, "tables": 26, "batch": 4096,
      "unique_ids_per_table": 10.0, "rows_per_table": 100,
      "step": {"median_ms": step_ms, "cpu_ms": step_ms}, "forward": {"median_ms": step_ms / 2},
      "input": {"median_ms": input_ms}, "net_ms": step_ms - input_ms,
      "op_ms": {"Small": 1.0, "Big": 9.0}, "peak_rss_gb": 1.5,
  }


_RUNS = [
    _run("zipf_hot1_dim16", defaults.STOCK, 41.0),
    _run("zipf_hot1_dim16", defaults.EV_SOK, 11.0),
    _run("zipf_hot1_dim16", defaults.EV_NN, 21.0),
    _run("zipf_hot1_dim16", defaults.EV_SOK, 9.0),
    _run("zipf_hot1_dim16", defaults.EV_SOK, 12.0),
    _run("uniform_hot1_dim16", defaults.STOCK, 11.0),
    _run("uniform_hot1_dim16", defaults.EV_SOK, 11.0),
]


class ReportTest(absltest.TestCase):

  def test_combine_takes_the_median_of_rounds(self):
    result = report.combine(_RUNS)["zipf_hot1_dim16"][defaults.EV_SOK]
    self.assertEqual(result["net_ms"], 10.0)
    self.assertEqual(result["step_ms"], 11.0)
    self.assertAlmostEqual(result["spread"], 12.0 / 9.0)

  def test_ratio_is_of_times_without_input(self):
    variants = report.combine(_RUNS)["zipf_hot1_dim16"]
    self.assertEqual(report.ratio(variants, defaults.EV_SOK), 4.0)
    self.assertEqual(report.ratio(variants, defaults.EV_NN), 2.0)
    self.assertAlmostEqual(
        report.ratio(variants, defaults.EV_SOK, "step_ms"), 41 / 11)
    self.assertIsNone(report.ratio(variants, defaults.RESOURCE))

  def test_page_has_goals_reached_and_missed(self):
    text = report.page(report.combine(_RUNS), {"cpu": "abacus"}, "python x")
    self.assertIn("reached (3.0x)", text)
    self.assertIn("50 % short of 2.0x", text)
    self.assertIn("**4.00x**", text)
    self.assertIn("Big 9.0, Small 1.0", text)
    self.assertIn("- cpu: abacus", text)
    self.assertIn("`python x`", text)

  def test_chart_is_a_png(self):
    path = os.path.join(tempfile.mkdtemp(), "chart.png")
    report.chart(report.combine(_RUNS), path)
    with open(path, "rb") as f:
      self.assertEqual(f.read(4), b"\x89PNG")


class RunTest(absltest.TestCase):
  """Runs all of `make bench` with stubs for the measurements."""

  def test_writes_every_page(self):
    out, programs = self.create_tempdir().full_path, self.create_tempdir().full_path
    for name in engine_programs.PROGRAMS:
      path = os.path.join(programs, name)
      with open(path, "w") as f:
        f.write("#!/bin/sh\necho I am %s\n" % name)
      os.chmod(path, 0o755)
    measured = []

    def measure(workload, variant, min_seconds):
      measured.append((workload.name, variant, min_seconds))
      return _run(workload.name, variant, 10. * (variant == defaults.STOCK) + 5.)

    with flagsaver.flagsaver(out=out, rounds=2, only="^zipf_hot1_dim16$",
                             min_seconds=0.5), \
        mock.patch.object(run, "measure", measure), \
        mock.patch.object(run, "_tensorflow_version", lambda: "1.15.5"), \
        mock.patch.object(engine_programs, "build", lambda root: programs):
      run.main(["run.py"])
    self.assertLen(measured, 2 * len(defaults.VARIANTS))
    self.assertIn(("zipf_hot1_dim16", defaults.STOCK, 0.5), measured)
    self.assertCountEqual(
        os.listdir(out), ["training.json", "training.md", "training.png", "engine.md"])
    for page, part in (("training.md", "zipf_hot1_dim16"),
                       ("engine.md", "I am step_benchmark")):
      with open(os.path.join(out, page)) as f:
        text = f.read()
      for word in (part, "commit", "command: `python benchmarks/run.py", "1.15.5"):
        self.assertIn(word, text, page)


class ScheduleTest(absltest.TestCase):

  def test_every_other_round_goes_backwards(self):
    self.assertEqual(
        list(run.schedule(["w"], ["a", "b"], 3)),
        [("w", "a"), ("w", "b"), ("w", "b"), ("w", "a"), ("w", "a"), ("w", "b")])


class MachineTest(absltest.TestCase):

  def test_describes_the_machine(self):
    description = machine.describe(os.path.dirname(os.path.abspath(__file__)))
    self.assertGreaterEqual(description["cores"], 1)
    self.assertIn("commit", description)

  def test_outside_a_checkout(self):
    self.assertEqual(machine.commit(tempfile.mkdtemp()), "unknown")


if __name__ == "__main__":
  absltest.main()

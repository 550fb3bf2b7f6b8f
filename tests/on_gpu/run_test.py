# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests which programs run.py runs, what it counts and how it exits. Needs no GPU."""

import os
from unittest import mock

from absl.testing import absltest

import exemptions
import placement
import run
import suites
import test_log

_CPU = ["run", "--device=/cpu:0", "--storages=per_table"]


def _outcome(passed, failed=(), placed=1):
  counts = test_log.Counts()
  counts.passed, counts.failed = passed, list(failed)
  log = "one\nFileError: no 'x'\n\nnot run: __main__.X.z: is about files\ntwo\nthree"
  return run.Outcome("a_test.py (hbm)", counts, placed, log, 1.0)


class RunTest(absltest.TestCase):

  def _main(self, *args):
    with mock.patch("builtins.print") as out:
      status = run.main(_CPU + list(args))
    return status, "\n".join(str(call[0][0]) for call in out.call_args_list if call[0])

  def test_suites_exist(self):
    for path, storages in suites.SUITES:
      self.assertTrue(os.path.exists(os.path.join(run._ROOT, path)), path)
      self.assertContainsSubset(storages, placement.STORAGES)

  def test_exempt_cases_are_of_suites(self):
    programs = {os.path.basename(path)[:-len(".py")] for path, _ in suites.SUITES}
    for exemption in exemptions.LIST:
      self.assertIn(exemption.program, programs)

  def test_what_is_exempt(self):
    case = "LookupsTest.test_cond0"
    self.assertIsNotNone(exemptions.why("lookups_test", case, "hbm", True))
    self.assertIsNone(exemptions.why("lookups_test", case, "hbm", False))
    self.assertIsNone(exemptions.why("other_test", case, "hbm", True))
    case = "CapacityTest.test_memory_is_bounded1"
    self.assertIsNotNone(exemptions.why("policies_test", case, "hbm_dram", False))
    self.assertIsNotNone(exemptions.why("policies_test", case, "hbm", False))
    self.assertIsNone(exemptions.why("policies_test", case, "per_table", False))

  def test_storages_and_patterns(self):
    every = run.programs([], [])
    self.assertIn(("tests/conformance/gpu_test.py", "per_table"), every)
    self.assertIn(("tests/conformance/ssd_test.py", "hbm_dram"), every)
    self.assertEqual(run.programs(["hbm"], ["conformance/gpu"]),
                     [("tests/conformance/gpu_test.py", "hbm")])

  def test_runs_a_suite_on_the_given_device(self):
    status, text = self._main("presence_ops")
    self.assertEqual(status, 0, text)
    self.assertRegex(text, r"presence_ops_test.py \(per_table\): 6 passed, 0 failed, "
                     "0 skipped, 6 tables placed")
    self.assertEndsWith(text, "6 passed, 0 failed, 0 skipped")

  def test_no_device_is_an_error(self):
    with mock.patch.object(run, "has_device", return_value=False):
      with mock.patch.object(run, "run_all") as run_all:
        self.assertEqual(self._main()[0], 2)
    run_all.assert_not_called()

  def test_failures_are_shown(self):
    with mock.patch("builtins.print") as out:
      self.assertEqual(run.report([_outcome(2), _outcome(1, ["a_test.py X.y"])], 2), 1)
    text = "\n".join(str(call[0][0]) for call in out.call_args_list)
    self.assertIn("its errors:\n  FileError: no 'x'\n", text)
    self.assertIn("  two\n  three", text)
    self.assertNotIn("one", text)
    self.assertIn("  a_test.py (hbm) X.z: is about files\n", text)
    self.assertIn("  a_test.py X.y", text)
    self.assertEndsWith(text, "3 passed, 1 failed, 0 skipped")

  def test_a_run_that_placed_no_table_fails(self):
    with mock.patch("builtins.print"):
      self.assertEqual(run.report([_outcome(2, placed=0)], 2), 1)
      self.assertEqual(run.report([_outcome(2, placed=1)], 2), 0)


if __name__ == "__main__":
  absltest.main()

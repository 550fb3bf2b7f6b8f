# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of run_tests."""

import tempfile
import time
from unittest import mock

from absl.testing import absltest

import run_tests
import tensorflow_2
import test_log


class RunTestsTest(absltest.TestCase):

  def _run(self, limit):
    """Returns the skips and the names of Bazel's runs of both kinds of parts."""
    with mock.patch.object(run_tests, "bazel_test",
                           return_value=test_log.Counts()) as bazel_test:
      counts = run_tests.sanitize(limit)
      counts.add(run_tests.extensive(limit))
    return counts.skipped_programs(), [call[0][0] for call in bazel_test.call_args_list]

  def test_all_parts_run_without_a_limit(self):
    skips, ran = self._run(run_tests.TimeLimit())
    self.assertEmpty(skips)
    self.assertEqual(ran, ["asan", "tsan", "extensive"])

  def test_a_part_that_would_end_too_late_is_a_skip_by_name(self):
    skips, ran = self._run(run_tests.TimeLimit(0., end_by=0.))
    self.assertEmpty(ran)
    self.assertStartsWith(skips[0], "AddressSanitizer")
    self.assertStartsWith(skips[1], "ThreadSanitizer")
    self.assertStartsWith(skips[2], "extensive")
    self.assertLen(skips, 3)

  def test_a_slow_machine_runs_the_short_parts_only(self):
    # A sanitizer takes 400 seconds on it.
    skips, ran = self._run(run_tests.TimeLimit(1000., end_by=time.time() + 225.))
    self.assertEqual(ran, ["extensive"])
    self.assertLen(skips, 2)

  def _run_on_2(self, set_up=0, limit=run_tests.TimeLimit(), version="2.15"):
    """Returns the Counts, and the names of Bazel's runs, each with its program."""
    with mock.patch.object(run_tests, "bazel_test",
                           return_value=test_log.Counts()) as bazel_test, \
        mock.patch.object(run_tests.steps, "run", return_value=set_up):
      counts = run_tests.on_tensorflow_2(
          version, tensorflow_2.eager(version) + tensorflow_2.graph(version), limit)
    return counts, [(call[0][0], call[0][3]) for call in bazel_test.call_args_list]

  def test_tensorflow_2_has_a_bazel_and_an_environment_of_its_own(self):
    for version, names in (("2.15", ("eager", "graph")), ("2.21", ("eager", "keras", "graph"))):
      counts, ran = self._run_on_2(version=version)
      self.assertEmpty(counts.skipped_programs() + counts.failed)
      bazel = ["tools/setup/bazel_for.sh", version]
      self.assertEqual(ran, [("%s_%s" % (name, version), bazel) for name in names])

  def test_an_environment_that_cannot_be_made_is_a_failure(self):
    counts, ran = self._run_on_2(set_up=1)
    self.assertEqual(counts.failed, ["tools/setup/other_tensorflow.sh 2.15 failed"])
    self.assertEmpty(ran)

  def test_tensorflow_2_is_a_skip_by_name_if_the_time_is_up(self):
    counts, ran = self._run_on_2(set_up=124, limit=run_tests.TimeLimit(0., end_by=0.))
    self.assertEqual([line.split(" ")[0] for line in counts.skipped_programs()],
                     ["eager_2.15", "graph_2.15"])
    self.assertEmpty(counts.failed + ran)

  def test_a_command_is_interrupted_if_its_time_is_up(self):
    limit = run_tests.TimeLimit(0., end_by=time.time() + 1.5)
    self.assertEqual(run_tests.steps.run(["sleep", "60"], limit.left()), 124)
    self.assertLessEqual(limit.left(), 0)
    self.assertEqual(run_tests.steps.run(["false"], 60.), 1)

  def _wheels_built(self, version, found):
    """Returns the wheels of build_wheels, and the commands that ran."""
    with mock.patch.object(run_tests.glob, "glob", side_effect=[[], found]), \
        mock.patch.object(run_tests.steps, "run", return_value=0) as run:
      wheels = run_tests.build_wheels(version)
    return wheels, [" ".join(call[0][0]) for call in run.call_args_list]

  def test_wheels_of_tensorflow_2_have_a_bazel_and_a_folder_of_their_own(self):
    wheels, commands = self._wheels_built("2.15", ["a", "b", "c", "d"])
    self.assertEqual(wheels, ["a", "b", "c", "d"])
    self.assertLen(commands, 8)
    self.assertEqual(commands[-2:], [
        "tools/setup/bazel_for.sh 2.15 build //tools/pip_package:build_sok",
        ".build/tf-2.15/bazel-bin/tools/pip_package/build_sok dist/tf2.15"])
    _, commands = self._wheels_built(None, [])
    self.assertEndsWith(commands[0], "-w dist .")
    self.assertEqual(commands[1:3], [
        "bazel build //tools/pip_package:build_hugectr",
        "bazel-bin/tools/pip_package/build_hugectr dist"])

  def test_a_missing_wheel_is_a_failure(self):
    self.assertIsNone(self._wheels_built("2.15", ["a"])[0])

  def _stopped(self, failed_checks):
    """Returns the Counts of a bazel_test whose time ends in its first or second run."""
    first = test_log.Counts()
    first.failed, first.failed_checks = list(failed_checks), list(failed_checks)
    with tempfile.TemporaryDirectory() as folder, \
        mock.patch.object(run_tests, "_BUILD_DIR", folder), \
        mock.patch.object(run_tests.steps, "run", return_value=124), \
        mock.patch.object(run_tests.os, "remove"), \
        mock.patch.object(run_tests.os.path, "exists", return_value=True), \
        mock.patch.object(run_tests.test_log, "count_build_events", return_value=first) as count:
      counts = run_tests.bazel_test("eager", ["//a"], limit=run_tests.TimeLimit(0., 0.))
    self.assertEqual(count.call_args[0][1], "the time was up before it ended")
    return counts

  def test_a_run_that_is_interrupted_is_a_skip_by_name_and_excuses_no_failure(self):
    counts = self._stopped([])
    self.assertEqual(counts.line(), "0 passed, 0 failed, 1 skipped")
    self.assertEqual(counts.skipped_programs(),
                     ["eager (1), the time was up before it ended: rest"])
    self.assertEqual(self._stopped(["//a"]).failed, ["//a"])


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of run_tests."""

import time
from unittest import mock

from absl.testing import absltest

import run_tests
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
    self.assertEqual(ran, ["asan", "tsan", "extensive_of_ranks", "extensive_on_gpu",
                           "extensive_of_the_rest"])

  def test_a_part_that_would_end_too_late_is_a_skip_by_name(self):
    skips, ran = self._run(run_tests.TimeLimit(0., end_by=0.))
    self.assertEmpty(ran)
    self.assertStartsWith(skips[0], "AddressSanitizer")
    self.assertStartsWith(skips[1], "ThreadSanitizer")
    self.assertStartsWith(skips[2], "extensive_of_ranks")
    self.assertLen(skips, 5)

  def test_a_slow_machine_runs_the_short_parts_only(self):
    # A sanitizer takes 400 seconds there, and the extensive tests of ranks 200.
    skips, ran = self._run(run_tests.TimeLimit(1000., end_by=time.time() + 225.))
    self.assertEqual(ran, ["extensive_of_ranks"])
    self.assertLen(skips, 4)

  def _run_on_2(self, set_up=0, **kwargs):
    with mock.patch.object(run_tests, "bazel_test",
                           return_value=test_log.Counts()) as bazel_test, \
        mock.patch.object(run_tests.steps, "run", return_value=set_up):
      counts = run_tests.on_tensorflow_2("2.15", **kwargs)
    return counts, [(call[0][0], call[0][3]) for call in bazel_test.call_args_list]

  def test_tensorflow_2_has_a_bazel_and_an_environment_of_its_own(self):
    counts, ran = self._run_on_2()
    self.assertEmpty(counts.skipped_programs() + counts.failed)
    bazel = ["tools/setup/bazel_for.sh", "2.15"]
    self.assertEqual(ran, [(n + "_2.15", bazel) for n in ("eager", "keras", "graph")])

  def test_graph_mode_of_tensorflow_2_counts_as_more(self):
    counts, ran = self._run_on_2(more=False)
    self.assertEmpty(counts.skipped_programs())
    self.assertLen(ran, 2)
    counts, ran = self._run_on_2(limit=run_tests.TimeLimit(0., end_by=0.))
    self.assertStartsWith(counts.skipped_programs()[0], "graph_2.15")
    self.assertLen(ran, 2)

  def test_an_environment_that_cannot_be_made_is_a_failure(self):
    counts, ran = self._run_on_2(set_up=1)
    self.assertEqual(counts.failed, ["tools/setup/other_tensorflow.sh 2.15 failed"])
    self.assertEmpty(ran)


if __name__ == "__main__":
  absltest.main()

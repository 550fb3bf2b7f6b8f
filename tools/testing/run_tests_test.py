# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of run_tests."""

from unittest import mock

from absl.testing import absltest

import run_tests
import test_log


class RunTestsTest(absltest.TestCase):

  def test_a_sanitizer_that_starts_too_late_is_a_skip_by_name(self):
    with mock.patch.object(run_tests, "bazel_test") as bazel_test:
      counts = run_tests.sanitize(start_by=0)
    bazel_test.assert_not_called()
    self.assertEqual(counts.line(), "0 passed, 0 failed, 2 skipped")
    self.assertStartsWith(counts.skipped_programs()[0], "AddressSanitizer")
    self.assertStartsWith(counts.skipped_programs()[1], "ThreadSanitizer")

  def test_both_sanitizers_run_without_a_limit(self):
    with mock.patch.object(run_tests, "bazel_test",
                           return_value=test_log.Counts()) as bazel_test:
      counts = run_tests.sanitize()
    self.assertEqual([call[0][0] for call in bazel_test.call_args_list], ["asan", "tsan"])
    self.assertEqual(counts.line(), "0 passed, 0 failed, 0 skipped")


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of run_tests."""

from absl.testing import absltest

import run_tests


class RunTestsTest(absltest.TestCase):

  def test_a_sanitizer_that_starts_too_late_is_a_skip_by_name(self):
    counts = run_tests.sanitize(start_by=0)
    self.assertEqual(counts.line(), "0 passed, 0 failed, 2 skipped")
    self.assertStartsWith(counts.skipped_programs()[0], "AddressSanitizer")
    self.assertStartsWith(counts.skipped_programs()[1], "ThreadSanitizer")


if __name__ == "__main__":
  absltest.main()

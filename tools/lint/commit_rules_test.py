# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of commit_rules."""

from absl.testing import absltest
from absl.testing import parameterized

import commit_rules


class CommitRulesTest(parameterized.TestCase):

  @parameterized.parameters(
      "Return an error from Erase when GPU counters cannot be read",
      "Pass weights to the step", "Merge branch 'words'", "Embed the version",
      "Re-read the table", "Use C++17 in tests", "Be" + " x" * 35)
  def test_allows(self, subject):
    self.assertEmpty(commit_rules.subject_violations(subject))

  @parameterized.parameters(
      "The sparse step on device memory", "A rank that goes wrong", "fix typo",
      "Erases what is old", "Fixed a race", "Adding a test", "Add a test.",
      "Add " + "x" * 69)
  def test_refuses(self, subject):
    self.assertLen(commit_rules.subject_violations(subject), 1)


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of prose_rules."""

from absl.testing import absltest
from absl.testing import parameterized

import prose_rules


class ProseRulesTest(parameterized.TestCase):

  @parameterized.parameters(
      ("a.h", "// Of what is read, the first", "a comment starts with its subject"),
      ("a.cc", "  // No: the rest comes later", "a comment starts with its subject"),
      ("a.py", "# Where nothing was found", "a comment starts with its subject"),
      ("a.py", 'def f():\n  """What it was."""', "a comment starts with its subject"),
      ("a.h", "int x;  // the caller asks for it", "code returns"),
      ("a.py", 'def f():\n  """Says how many."""', "code returns"),
      ("a.cu", "// All keys but for the last", "write except"),
      ("a.md", "It is one\'s own.", "write except"),
      ("a.md", "a " * 41 + "b.", "a sentence of"),
      ("a.h", "// %s\n// %s." % ("a " * 21, "a " * 20), "a sentence of"),
      ("a.md", "%s; %s." % ("a " * 21, "a " * 20), "a sentence of"),
      ("a.md", "| x | %s |" % ("a " * 41), "a cell of"),
      ("a.md", "| x | is an error |", "raises"),
      ("a.h", "// Another key is an error.", "raises"),
      ("a.md", "It has an own file.", "its own"),
      ("a.py", 'def f(path):\n  """Reads.\n\n  Args:\n    path: of a file.\n  """', "its noun"),
      ("a/begun_files.py", "x = 1", "the file's name"),
      ("a.py", "# .6 ms per step", "starts with a digit"),
      ("a.h", "bool GoesThere() const;", "name the memory"),
      ("a.cc", "samples_there = 1;", "name the memory"),
      ("a.cc", 'Fail("dim: want 1, got 0");', "expected X"),
      ("a.py", "raise ValueError('that is an error')", "raises"),
      ("a.cc", "f(here.ids);", "name the memory"),
      ("a.py", "there = 1", "name the memory"),
      ("a_test.py", "class A:\n  def test_is_empty(self):\n    pass", "what it checks"),
      ("a_test.cc", "TEST(A,\n     Acceptance08Batches) {}", "what it checks"),
      ("a_test.cc", "TEST_F(A, IsEmpty) {}", "what it checks"),
  )
  def test_refuses(self, path, text, message):
    found = prose_rules.violations(path, text + "\n")
    self.assertLen(found, 1)
    self.assertIn(message, found[0])

  @parameterized.parameters(
      ("a.h", "// Returns the rows.\n//\n// Thread-safe."),
      ("a.h", "int x;  // of the batch"),
      ("a.h", 'const char* kUrl = "http://asks";'),
      ("a.py", "# Rows are known; the reader wants_more."),
      ("a.md", "The page says what is asked."),
      ("a.md", "```\n%s\n```" % ("a " * 50)),
      ("a.md", "| %s |" % ("a " * 40)),
      ("a.md", "```\n| %s |\n```" % ("a " * 50)),
      ("a.md", "| `%s` |" % ("a " * 50)),
      ("a.md", "If there is an error, its own file takes 0.6 ms; `x = .6`."),
      ("a.h", "// The parts:\n//   a  %s\n//   b  %s" % ("a " * 20, "b " * 20)),
      ("a.md", "- %s.\n- %s." % ("a " * 30, "a " * 30)),
      ("a.h", "int where = 0; Theremin adherent = 1;  // is there"),
      ("a.h", 'f("here", "there");  // "want"'),
      ("a.cc", 'Fail("dim: expected 1, got 0");'),
      ("a_test.py", "class A:\n  def test_issues_are_closed(self):\n    pass"),
      ("a_test.cc", "TEST_F(A, IsolatesCalls) {}"),
      ("a.py", "not python ("),
  )
  def test_allows(self, path, text):
    self.assertEmpty(prose_rules.violations(path, text + "\n"))


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of word_rules."""

from absl.testing import absltest
from absl.testing import parameterized

import word_rules

_NOT_ANYONE = "nobo" + "dy"
_PERSON = "wh" + "o"


class WordRulesTest(parameterized.TestCase):

  @parameterized.parameters(
      ("a.py", "# %s waits" % _NOT_ANYONE),
      ("a.md", "%s waits" % _NOT_ANYONE.capitalize()),
      ("a.h", "// %sever asks" % _PERSON),
      ("a.cc", "// what %sm it belongs to" % _PERSON),
      ("BUILD", "# the reader hi" + "mself"),
      ("a.cu", "// a thread %s waits" % _PERSON),
      ("a.py", "# what hi" + "s call has written"),
  )
  def test_refuses_words_without_a_name(self, path, line):
    found = word_rules.violations(path, "\n" + line + "\n")
    self.assertLen(found, 1)
    self.assertIn(path + ":2: ", found[0])

  @parameterized.parameters(
      ("a.h", "// a table whose rows are on an SSD; the whole of it"),
      ("a.h", "Status Fail(const std::string& %s);  // begins with %s()" % (_PERSON, _PERSON)),
      ("a.md", "For engineers %s keep models." % _PERSON),
      ("LICENSE", "to %sm the work belongs" % _PERSON),
  )
  def test_allows_other_words(self, path, line):
    self.assertEmpty(word_rules.violations(path, line + "\n"))

  @parameterized.parameters(
      "a " * 60, "- a " * 40, "![chart] (%s)" % ("x" * 120), "   a" * 40)
  def test_refuses_long_lines_of_markdown(self, line):
    self.assertLen(word_rules.violations("a.md", line.rstrip() + " ..\n"), 1)

  @parameterized.parameters(
      "| %s |" % ("a " * 70), "# " + "a " * 70, "    code " + "a " * 70,
      "```\n%s\n```" % ("a " * 70), "[a](%s)" % ("x" * 130), "a " * 59 + "a")
  def test_allows_long_lines_that_cannot_be_broken(self, text):
    self.assertEmpty(word_rules.violations("a.md", text + "\n"))

  def test_columns_are_markdowns_alone(self):
    self.assertEmpty(word_rules.violations("a.txt", "a " * 70 + "\n"))

  def test_a_fence_ends(self):
    text = "```\ncode\n```\n" + "a " * 70 + "\n"
    self.assertLen(word_rules.violations("a.md", text), 1)

  @parameterized.parameters(
      ("docs/a.md", "a\n" * 251, "split it"),
      ("docs/a.md", ("a " * 50 + "\n") * 51, "split it"),
      ("docs/design/0001-a.md", "| a |\n| - |\n" + "| b |\n" * 13, "split it by subject"),
      ("docs/a.md", "The goal is 5 ms.\n", "whose goal"),
      ("README.md", "Measured at d64b1b98.\n", "name commits"))
  def test_refuses_forms_of_pages(self, path, text, message):
    found = word_rules.violations(path, text)
    self.assertLen(found, 1)
    self.assertIn(message, found[0])

  @parameterized.parameters(
      ("docs/a.md", "a\n" * 250), ("docs/design/0001-a.md", "a\n" * 251),
      ("docs/design/0001-a.md", "| a |\n| - |\n" + "| b |\n" * 12),
      ("docs/a.md", "| a |\n| - |\n" + "| b |\n" * 13),
      ("a.md", "The project's goal is 5 ms with 1234567 rows and `d64b1b98`.\n"),
      ("benchmarks/results/a.md", "Measured at d64b1b98.\n"))
  def test_allows_forms_of_pages(self, path, text):
    self.assertEmpty(word_rules.violations(path, text))


if __name__ == "__main__":
  absltest.main()

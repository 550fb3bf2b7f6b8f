# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of text_rules."""

from absl.testing import absltest
from absl.testing import parameterized

import text_rules


class TextRulesTest(parameterized.TestCase):

  @parameterized.parameters(
      ("a.py", "x = 1", "no newline"),
      ("a.py", "x = 1\n\n", "empty lines"),
      ("a.py", "x = 1 \n", "white space"),
      ("a.md", "a\tb\n", "a tab"),
      ("a.py", "# " + "x" * 99 + "\n", "101 columns"),
      ("a.py", "x" * 101 + "  # pylint: disable=invalid-name\n", "101 columns"),
      ("a.py", "def f():\n    pass\n", "indented by 4"),
      ("a.py", "def f(:\n  'pass\n", "cannot be read"),
  )
  def test_refuses(self, path, text, words):
    found = text_rules.violations(path, text)
    self.assertLen(found, 1)
    self.assertIn(words, found[0])

  @parameterized.parameters(
      ("a.py", ""),
      ("a.py", "def f(a,\n      b):\n  if a:\n    return b\n"),
      ("a.py", "# " + "x" * 98 + "\n"),
      ("a.py", "x" * 90 + "  # pylint: disable=protected-access\n"),
      ("a.md", "x" * 200 + "\n"),
      ("Makefile", "a:\n\tb\n"),
  )
  def test_allows(self, path, text):
    self.assertEmpty(text_rules.violations(path, text))

  @parameterized.parameters(
      ("a \nb", "a\nb\n"), ("a\n\n\n", "a\n"), ("", ""), ("a\r\n", "a\n"), ("a\n", "a\n"))
  def test_mends(self, text, expected):
    self.assertEqual(text_rules.mended(text), expected)

  def test_excuses_only_imports_on_purpose(self):
    path = self.create_tempfile(
        "a.py",
        "import os  # pylint: disable=unused-import\nimport sys\n"
        "a = b  # pylint: disable=undefined-variable\n").full_path
    unused = "%s:%d:1: 'os' imported but unused"
    self.assertTrue(text_rules.is_excused(unused % (path, 1)))
    self.assertFalse(text_rules.is_excused(unused % (path, 2)))
    self.assertTrue(text_rules.is_excused(unused % ("p/__init__.py", 1)))
    undefined = "%s:%d:5: undefined name 'b'"
    self.assertTrue(text_rules.is_excused(undefined % (path, 3)))
    self.assertFalse(text_rules.is_excused(undefined % (path, 2)))
    self.assertFalse(text_rules.is_excused("%s:1:1: something else" % path))
    self.assertFalse(text_rules.is_excused("p/__init__.py:1:1: undefined name 'x'"))


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rules for every file: required headers and forbidden text."""

import re

from absl.testing import absltest
from absl.testing import parameterized

import tree

_MAX_LINES = 700

_SOURCES = (".py", ".cc", ".h", ".cu", ".cuh", ".bzl", ".sh", ".lds", "/BUILD",
            ".BUILD")
_ROOT_SOURCES = {
    "BUILD", "WORKSPACE", "Makefile", "configure", ".ci/run", "tools/step"
}

_LICENCE = ("Copyright 2026 The SparseOperationKit Authors.",
            "SPDX-License-Identifier: Apache-2.0")

# Split, so that this file does not break its own rule.
_MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/(%s)(?=/|\b)" % "|".join(
    ["ro" + "ot", "ho" + "me", "tm" + "p", "wo" + "rk"]))
_HOST = re.compile("|".join([
    r"py" + r"pi\.", r"python" + r"hosted", r"deb\." + r"debian", r"conda\." + r"org",
    r"arti" + r"factory", r"index" + r"-url", r"pypi" + r"/simple"
]))
_LEFT_BEHIND = re.compile(r"\b(%s)\b" % "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]))


def is_source(path):
  return path.endswith(_SOURCES) or path in _ROOT_SOURCES


def violations(path, text):
  """Returns a line for each rule that a file breaks."""
  found = []
  lines = text.splitlines()
  if is_source(path):
    if len(lines) > _MAX_LINES:
      found.append("%s: %d lines, split it before %d" % (path, len(lines), _MAX_LINES))
    head = "\n".join(lines[:6])
    if not all(part in head for part in _LICENCE):
      found.append("%s: lacks the licence lines" % path)
  for number, line in enumerate(lines, 1):
    for pattern, what in ((_MACHINE_PATH, "a path of one machine"),
                          (_HOST, "a package host"),
                          (_LEFT_BEHIND, "work left behind")):
      if pattern.search(line):
        found.append("%s:%d: %s: %s" % (path, number, what, line.strip()[:80]))
  return found


class FilesTest(parameterized.TestCase):

  def test_the_tree_obeys(self):
    found = []
    for path in tree.files():
      text = tree.read(path)
      if text is not None and path != "LICENSE":
        found += violations(path, text)
    self.assertEmpty(found, "\n" + "\n".join(found))

  def test_the_license_exists(self):
    self.assertIn("Apache License", tree.read("LICENSE"))

  @parameterized.parameters(
      "cd /" + "root/x", "PATH=/" + "home/me", "open('/" + "tmp/x')", "/" + "work/main",
      "pip install --index" + "-url x", "# TO" + "DO: later")
  def test_refuses(self, line):
    self.assertLen(violations("docs/a.md", line + "\n"), 1)

  @parameterized.parameters(
      "python/root/x", "the root/home of it", "a/tmp/x", "$HOME/work", "benchmark/work")
  def test_allows(self, line):
    self.assertEmpty(violations("docs/a.md", line + "\n"))

  def test_refuses_a_long_source(self):
    head = "# %s\n# %s\n" % _LICENCE
    self.assertEmpty(violations("a/b.py", head + "x = 1\n" * (_MAX_LINES - 2)))
    self.assertLen(violations("a/b.py", head + "x = 1\n" * (_MAX_LINES - 1)), 1)

  @parameterized.parameters("a/b.py", "a/BUILD", "a/b.cc", "Makefile", ".ci/run")
  def test_refuses_a_source_without_licence(self, path):
    self.assertLen(violations(path, "x = 1\n"), 1)


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""docs/environment_variables.md lists exactly the variables that the sources read."""

import re

from absl.testing import absltest
from absl.testing import parameterized

import tree

_PAGE = "docs/environment_variables.md"

# This file contains names for its own cases.
_SELF = "tests/repo_rules/environment_test.py"

_SOURCES = (".py", ".cc", ".h", ".cu", ".cuh", ".bzl")

# Names of this project's variables; a string with such a name counts as a use.
_OWN = r"(?:TF_EV|TF_SSDHASH|TF_RECORD|SOK|HPS|EV_TEST)_[A-Z0-9_]+"

# Matches reads with a literal name. Reads by a constant or a list of names are found by
# _STRING, in files that read any variable.
_READ = re.compile(
    r"(?:getenv\(|environ\.get\(|environ\.setdefault\(|environ\[|FromEnvVar\()\s*"
    r"[\"']([A-Z][A-Z0-9_]*)[\"']")
_READS_ANY = re.compile(r"getenv\(|\benviron\b|FromEnvVar\(")
_STRING = re.compile(r"[\"']([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)[\"']")
_OWN_STRING = re.compile(r"[\"'](%s)[\"'=]" % _OWN)

# Sources in the syntax of shell and make.
_SHELL_SOURCES = ("configure", "Makefile", "tools/setup/find_python.sh")
_SHELL_READ = re.compile(r"\$[({]([A-Z][A-Z0-9_]*)\b")

_ROW = re.compile(r"^\| (`[^|]*`) \|", re.MULTILINE)
_NAME = re.compile(r"`([A-Z][A-Z0-9_]*)`")

# Variables that no page lists, each with the reason.
_NOT_LISTED = {
    "PATH": "the system's",
    "HOME": "the system's",
    "BUILD_WORKSPACE_DIRECTORY": "Bazel's: `bazel run` sets it",
    "BASH_SOURCE": "the shell's",
    "CURDIR": "make's",
    "MAKE": "make's",
    "PY": "set in the Makefile",
    "STEP": "set in the Makefile",
    "HPS_TEST_PASSWORD": "a password_env of tests",
}


def _is_test(path):
  """Returns whether other projects' variables do not matter in a file."""
  return (path.startswith(("tests/", "benchmarks/")) or "/benchmark/" in path or
          "/testing/" in path or
          path.endswith(("_test.py", "_utest.py", "_test.cc", "_benchmark.cc", "made_files.h")))


def names_of(path, text):
  """Returns the set of variables that a source reads or sets.

  Args:
    path: string, relative to the root.
    text: the source.
  """
  if path in _SHELL_SOURCES:
    return set(_SHELL_READ.findall(text))
  found = set(_OWN_STRING.findall(text))
  if not _is_test(path):
    found.update(_READ.findall(text))
    if _READS_ANY.search(text):
      found.update(_STRING.findall(text))
  return found


def listed(page):
  """Returns the set of names in the first columns of a page's tables."""
  return {name for row in _ROW.findall(page) for name in _NAME.findall(row)}


class EnvironmentTest(parameterized.TestCase):

  @parameterized.parameters(
      ("a.py", "os.environ.get('ANY')", {"ANY"}),
      ("a.py", "import os\nx = os.environ\n_NAMES = ['HOROVOD_SIZE']", {"HOROVOD_SIZE"}),
      ("a.cc", "std::getenv(\"TF_EV_X\")", {"TF_EV_X"}),
      ("a.cc", "constexpr char kName[] = \"HPS_X\";", {"HPS_X"}),
      ("a.cc", "ReadBoolFromEnvVar(\"TF_X\", false, &x)", {"TF_X"}),
      ("a.bzl", "environ = [\"SOK_X\"]", {"SOK_X"}),
      ("a_test.py", "os.environ['ANY'], dict(SOK_X=1), 'SOK_Y'", {"SOK_Y"}),
      ("a.py", "GLOBAL_VARIABLES = 'GLOBAL_VARIABLES'", set()),
      ("Makefile", "$(if $(MORE),--more) $(foreach w)", {"MORE"}))
  def test_finds_names(self, path, text, expected):
    self.assertEqual(names_of(path, text), expected)

  def test_page_and_sources_agree(self):
    page = listed(tree.read(_PAGE))
    self.assertGreater(len(page), 30)
    read = {}
    for path in tree.files(*(_SOURCES + _SHELL_SOURCES)):
      is_source = path.endswith(_SOURCES) or path in _SHELL_SOURCES
      if is_source and path != _SELF:
        for name in names_of(path, tree.read(path) or ""):
          read.setdefault(name, path)
    missing = ["%s: %s is not in %s" % (read[n], n, _PAGE)
               for n in sorted(set(read) - page - set(_NOT_LISTED))]
    self.assertEmpty(missing, "\n" + "\n".join(missing))
    stale = ["%s: no source has %s" % (_PAGE, name) for name in sorted(page - set(read))]
    self.assertEmpty(stale, "\n" + "\n".join(stale))
    self.assertEmpty(set(_NOT_LISTED) - set(read), "no source has these exceptions")


if __name__ == "__main__":
  absltest.main()

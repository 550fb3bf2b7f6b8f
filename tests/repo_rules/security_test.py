# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The versions in SECURITY.md are the pinned versions."""

import re

from absl.testing import absltest

import tree

_PAGE = "SECURITY.md"
_PIN = re.compile(r"^([\w.-]+)==([\w.]+)$", re.MULTILINE)
_TABLES = re.compile(r"## Known weaknesses of pinned packages\n(.*)", re.DOTALL)
_FIRST_COLUMN = re.compile(r"^\| ([^|]*) \|", re.MULTILINE)
_VERSION = re.compile(r"\b([A-Za-z][\w-]*) (\d+(?:\.\d+)+)\b")


def pins(text):
  """Returns {lower-case name: version} of a requirements file."""
  return {name.lower(): version for name, version in _PIN.findall(text)}


def versions(page):
  """Returns {lower-case name: version} of the first columns of the tables."""
  rows = " ".join(_FIRST_COLUMN.findall(_TABLES.search(page).group(1)))
  return {name.lower(): version for name, version in _VERSION.findall(rows)}


class SecurityTest(absltest.TestCase):

  def test_versions_are_those_that_are_pinned(self):
    pinned = {}
    for path in tree.files(".txt"):
      if path.startswith("tools/setup/requirements"):
        pinned.update(pins(tree.read(path)))
    named = versions(tree.read(_PAGE))
    self.assertGreater(len(named), 10)
    self.assertEqual({name: pinned.get(name) for name in named}, named,
                     "%s lists versions that are not the pinned ones: check the "
                     "known weaknesses of the pinned versions" % _PAGE)

  def test_finds_versions(self):
    page = ("| numpy 0 |\n## Known weaknesses of pinned packages\n"
            "| pip 24.0, Pillow 9.5.0 (x) | below 1.19 | z 1.0 |\n")
    self.assertEqual(versions(page), {"pip": "24.0", "pillow": "9.5.0"})


if __name__ == "__main__":
  absltest.main()

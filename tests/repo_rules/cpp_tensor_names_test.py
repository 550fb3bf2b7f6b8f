# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The names of a checkpoint's tensors are spelled in one file of C++.

Tests may spell them: a test of a format says what the format is.
"""

import re

from absl.testing import absltest
from absl.testing import parameterized

import tree

_ONLY = "kernels/engine/checkpoint/tensor_names.h"

_CPP = (".h", ".cc", ".cu", ".cuh")
_ROOTS = ("kernels/", "addons/")

_COMMENT = re.compile(r"//.*")
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_SPELLED = re.compile(
    r"-(keys|values|versions|freqs|default_rows)(_filtered)?$"
    r"|(keys|versions|freqs)_filtered$"
    r"|sparse_incr_|-?partition_filter_offset$|-partition_offset$|/part_")


def violations(path, text):
  """Returns a line for each string of a source that spells such a name."""
  found = []
  for number, line in enumerate(text.splitlines(), 1):
    for literal in _LITERAL.findall(_COMMENT.sub("", line)):
      if _SPELLED.search(literal):
        found.append("%s:%d: spells '%s': take the name from %s" %
                     (path, number, literal, _ONLY))
  return found


def _is_checked(path):
  return path.startswith(_ROOTS) and path != _ONLY and not path.endswith("_test.cc")


class CppTensorNamesTest(parameterized.TestCase):

  def test_the_tree_obeys(self):
    paths = [path for path in tree.files(*_CPP) if _is_checked(path)]
    self.assertGreater(len(paths), 50)
    found = []
    for path in paths:
      found += violations(path, tree.read(path))
    self.assertEmpty(found, "\n" + "\n".join(found))

  def test_the_one_place_spells_them(self):
    self.assertGreater(len(violations(_ONLY, tree.read(_ONLY))), 10)

  @parameterized.parameters(
      'name + "-keys"', 'Find("v-values");', 'StrCat(t, "-sparse_incr_", what)',
      'StrCat(name, "/part_", i)', '{"-versions_filtered"}', 'x = "-partition_offset"')
  def test_refuses(self, text):
    self.assertLen(violations("a.cc", text), 1)

  @parameterized.parameters(
      '// "-keys"', 'Input("keys: int64")', 'x = kKeys;', '"the keys"', '"versions"')
  def test_allows(self, text):
    self.assertEmpty(violations("a.cc", text))


if __name__ == "__main__":
  absltest.main()

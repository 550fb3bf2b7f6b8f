# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The names of a checkpoint's tensors are spelled in one place per language.

Tests may spell them, because a test of a format must state the format.
"""

import ast
import re

from absl.testing import absltest
from absl.testing import parameterized

import tree

_ONLY = "python/embedding_variable/checkpoint_format/tensor_names.py"
_CPP_ONLY = "kernels/engine/checkpoint/tensor_names.h"

# Folders of the checkpoint tools and of the rest of the wheel.
_ROOTS = ("python/", "addons/", "tools/")

# A folder in SOK's own format, whose files have similar names.
_OTHER_FORMATS = {
    "addons/sparse_operation_kit/python/sparse_operation_kit/files/dump_format.py",
}

_SPELLED = re.compile(
    r"-(keys|values|versions|freqs|default_rows)(_filtered)?$"
    r"|(keys|versions|freqs)_filtered$"
    r"|sparse_incr_|incr_partition_|partition_filter_offset$|-partition_offset$"
    r"|/part_(%d|\\d)")


_CPP = (".h", ".cc", ".cu", ".cuh")
_CPP_ROOTS = ("kernels/", "addons/")
_CPP_COMMENT = re.compile(r"//.*")
_CPP_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_CPP_PART = re.compile(r"/part_")
# Names of RocksDB's statistics.
_NOT_TENSORS = re.compile(r"^rocksdb\.[a-z-]+$")


def cpp_violations(path, text):
  """Returns a line for each string of a C++ source that spells such a name."""
  found = []
  for number, line in enumerate(text.splitlines(), 1):
    for literal in _CPP_LITERAL.findall(_CPP_COMMENT.sub("", line)):
      if _NOT_TENSORS.search(literal):
        continue
      if _SPELLED.search(literal) or _CPP_PART.search(literal):
        found.append("%s:%d: spells '%s': take the name from %s" %
                     (path, number, literal, _CPP_ONLY))
  return found


def violations(path, text):
  """Returns a line for each string of a module that spells such a name."""
  module = ast.parse(text, path)
  # A string that is a statement of its own is a docstring.
  prose = {
      id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)
  }
  return [
      "%s:%d: spells '%s': take the name from %s" % (path, node.lineno, node.s, _ONLY)
      for node in ast.walk(module)
      if isinstance(node, ast.Str) and id(node) not in prose and
      _SPELLED.search(node.s)
  ]


def _is_checked(path):
  return (path.startswith(_ROOTS) and path != _ONLY and path not in _OTHER_FORMATS and
          not path.endswith(("_test.py", "_utest.py")))


def _is_checked_cpp(path):
  return (path.startswith(_CPP_ROOTS) and path != _CPP_ONLY and
          not path.endswith("_test.cc"))


class TensorNamesTest(parameterized.TestCase):

  def test_the_tree_obeys(self):
    paths = [path for path in tree.files(".py") if _is_checked(path)]
    self.assertGreater(len(paths), 50)
    found = []
    for path in paths:
      found += violations(path, tree.read(path))
    self.assertEmpty(found, "\n" + "\n".join(found))

  def test_the_one_place_spells_them(self):
    self.assertGreater(len(violations(_ONLY, tree.read(_ONLY))), 5)

  @parameterized.parameters(
      "x = name + '-keys'", "x = '%s-values' % name", "x = name.endswith('-versions')",
      "x = {'keys_filtered': 1}", "x = '%s-sparse_incr_keys' % name",
      "x = '%s/part_%d' % (name, i)", "x = re.sub(r'/part_\\d+$', '', name)")
  def test_refuses(self, text):
    self.assertLen(violations("a.py", text), 1)

  @parameterized.parameters(
      "'''v-keys'''", "def f():\n  'Reads v-keys'\n", "x = 'keys'", "x = 'a-key'",
      "x = tensor_names.KEYS")
  def test_allows(self, text):
    self.assertEmpty(violations("a.py", text))

  def test_the_cpp_tree_obeys(self):
    paths = [path for path in tree.files(*_CPP) if _is_checked_cpp(path)]
    self.assertGreater(len(paths), 50)
    found = []
    for path in paths:
      found += cpp_violations(path, tree.read(path))
    self.assertEmpty(found, "\n" + "\n".join(found))

  def test_the_one_header_spells_them(self):
    self.assertGreater(len(cpp_violations(_CPP_ONLY, tree.read(_CPP_ONLY))), 10)

  @parameterized.parameters(
      'name + "-keys"', 'Find("v-values");', 'StrCat(t, "-sparse_incr_", what)',
      'StrCat(name, "/part_", i)', '{"-versions_filtered"}', 'x = "-partition_offset"')
  def test_refuses_cpp(self, text):
    self.assertLen(cpp_violations("a.cc", text), 1)

  @parameterized.parameters(
      '// "-keys"', 'Input("keys: int64")', 'x = kKeys;', '"the keys"', '"versions"')
  def test_allows_cpp(self, text):
    self.assertEmpty(cpp_violations("a.cc", text))


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks that kinds of things are listed in one place per language.

docs/architecture.md counts the files that an addition touches. Code that compares a
name or a value of such a list would be one more file.
"""

import ast
import re

from absl.testing import absltest
from absl.testing import parameterized

import tree

_CPP = (".h", ".cc", ".cu", ".cuh")
_PRODUCT = ("kernels/", "addons/", "python/")
_COMMENT = re.compile(r"//.*")
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')

_HANDLE_OP = "kernels/tf/ops/handle_ops.cc"
_STORAGES = "kernels/engine/rows/row_storage.h"
_DATABASES = "addons/hierarchical_parameter_server/server/databases.cc"


def _is_product(path):
  return path.startswith(_PRODUCT) and not re.search(
      "/testing/|/benchmark/", path) and not path.endswith(
      ("_test.cc", "_test.py", "_utest.py", "_benchmark.cc", "/testing.py"))


def strings(path, text):
  """Returns the set of the string constants of a C++ or Python file."""
  if path.endswith(".py"):
    return {node.s for node in ast.walk(ast.parse(text, path))
            if isinstance(node, ast.Str)}
  return {literal for line in text.splitlines()
          for literal in _LITERAL.findall(_COMMENT.sub("", line))}


def _files_with(names, *suffixes):
  return {path for path in tree.files(*suffixes)
          if _is_product(path) and names & strings(path, tree.read(path))}


def _storages():
  return set(re.findall(r'RowStorage::\w+, "(\w+)"', tree.read(_STORAGES)))


class OneListTest(parameterized.TestCase):

  def test_names_of_storages(self):
    # The names of storages in one memory are also words for other things.
    tiers = {name for name in _storages() if "_" in name}
    self.assertGreater(len(tiers), 1)
    self.assertEqual(
        _files_with(tiers, ".py", *_CPP),
        {_STORAGES, "python/embedding_variable/variables/storages.py"})

  def test_cases_of_storages(self):
    case = re.compile(r"\bcase (ev::)?RowStorage::")
    self.assertEqual(
        {path for path in tree.files(*_CPP) if case.search(tree.read(path))},
        {"kernels/engine/rows/make_row_home.cc"})

  def test_attributes_of_the_handle(self):
    op = re.search(r'REGISTER_OP\("EvHandle"\).*?SetIsStateful', tree.read(_HANDLE_OP),
                   re.S).group(0)
    names = set(re.findall(r'Attr\("(\w+):', op))
    # Set by handle_ops.handle; not options of a table.
    names -= {"container", "shared_name", "dtype", "shape"}
    self.assertGreater(len(names), 10)
    # Options that EvEvict has, too.
    names -= {"steps_to_live", "l2_weight_threshold"}
    self.assertEqual(
        {path for path in _files_with(names, *_CPP) if path.startswith("kernels/tf/")},
        {"kernels/tf/op_kernels/handle_kernels.cc"})

  def test_types_of_databases(self):
    table = tree.read(_DATABASES).split("DatabaseTypes() {")[1].split("};")[0]
    names = {name for name in strings(_DATABASES, table) if "_" in name}
    self.assertGreater(len(names), 5)
    self.assertEqual(
        {path for path in _files_with(names, *_CPP) if "/database/" not in path},
        {
            _DATABASES,
            # The default.
            "addons/hierarchical_parameter_server/config/config.h",
            # The memory that a plan needs depends on the type.
            "addons/hierarchical_parameter_server/server/report.cc",
        })


if __name__ == "__main__":
  absltest.main()

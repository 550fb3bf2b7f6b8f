# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Visibility lists of BUILD files allow no more than the table of folders."""

import re

from absl.testing import absltest
from absl.testing import parameterized

import cpp_arrows_test as arrows
import tree

_LIST = re.compile(r"visibility = \[([^\]]*)\]")
_LABEL = re.compile(r'"(//[^"]*)"')

# Programs, tests, and the packages that assemble the library and the wheels may use every
# folder. Python packages include no headers; they load libraries.
_OUTSIDE = ("addons/hugectr/python", "benchmarks", "docs", "examples", "python", "tests",
            "tools")
_ASSEMBLY = ("kernels/tf:__pkg__",
             "addons/hierarchical_parameter_server/tf:__pkg__",
             "addons/hierarchical_parameter_server/python:__subpackages__")

# Packages that every macro uses, and packages of others.
_EXEMPT = ("third_party/", "tools/build_defs/")


def _may_see(user, folder):
  """Returns whether files of the folder 'user' may include those of 'folder'."""
  if folder in (user, "kernels/engine/testing",
                "addons/hierarchical_parameter_server/cache/testing",
                "addons/hierarchical_parameter_server/database/testing",
                "addons/hierarchical_parameter_server/source/testing"):
    return True
  return (folder in arrows.MAY_USE.get(user, ()) or
          folder in arrows.TESTS_MAY_USE.get(user, ()))


def violations(path, text):
  """Returns a line for each entry of a visibility list that the table forbids."""
  if path.startswith(_EXEMPT):
    return []
  folder = arrows.folder_of(path)
  found = []
  for entries in _LIST.findall(text):
    for label in _LABEL.findall(entries):
      if label == "//visibility:public":
        found.append("%s: %s: name the folders that may use it" % (path, label))
        continue
      if label == "//visibility:private" or folder is None:
        continue
      user = label[2:].partition(":")[0]
      if user.startswith(_OUTSIDE) or label[2:] in _ASSEMBLY:
        continue
      folders = [arrows.folder_of(user + "/")]
      if folders == [None]:  # a parent: checks the folders in it
        folders = [r for r in arrows.MAY_USE if r.startswith(user + "/")] or folders
      if not all(_may_see(r, folder) for r in folders):
        found.append("%s: %s may not use %s" % (path, label, folder))
  return found


class VisibilityTest(parameterized.TestCase):

  def test_the_tree_obeys(self):
    found = []
    for path in tree.files("BUILD"):
      found += violations(path, tree.read(path))
    self.assertEmpty(found, "\n" + "\n".join(found))

  @parameterized.parameters(
      ("kernels/engine/ids/BUILD", "//visibility:public"),
      ("kernels/engine/embedding/BUILD", "//kernels/engine/ids:__subpackages__"),
      ("addons/hierarchical_parameter_server/cache/table/BUILD",
       "//kernels/engine/rows:__subpackages__"),
      ("addons/sparse_operation_kit/exchange/BUILD", "//kernels/tf/bridge:__pkg__"),
      ("kernels/tf/op_kernels/BUILD", "//kernels/engine/embedding:__pkg__"),
      ("kernels/engine/rows/BUILD",
       "//addons/hierarchical_parameter_server:__subpackages__"),
      ("kernels/engine/base/BUILD", "//addons/nothing:__subpackages__"),
  )
  def test_refuses(self, path, label):
    self.assertLen(violations(path, '    visibility = ["%s"],\n' % label), 1)

  @parameterized.parameters(
      ("kernels/engine/ids/BUILD", "//kernels/engine/embedding:__subpackages__"),
      ("kernels/engine/ids/BUILD", "//addons/sparse_operation_kit/exchange:__pkg__"),
      ("kernels/engine/base/BUILD",
       "//addons/hierarchical_parameter_server:__subpackages__"),
      ("kernels/engine/embedding/BUILD", "//benchmarks:__subpackages__"),
      ("addons/hugectr/reader/BUILD", "//addons/hugectr/python/hugectr/data:__pkg__"),
      ("kernels/cuda10/BUILD", "//python/embedding_variable/gpu:__pkg__"),
      ("kernels/engine/testing/BUILD", "//kernels/engine/table:__subpackages__"),
      ("kernels/engine/rows/gpu/BUILD", "//kernels/tf:__pkg__"),
  )
  def test_allows(self, path, label):
    self.assertEmpty(violations(path, '    visibility = ["%s"],\n' % label))


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""BUILD files use the project's macros, which check the dependencies of folders."""

import re

from absl.testing import absltest

import tree

_NATIVE = re.compile(r"^\s*(?:native\.)?((?:cc|py)_(?:library|binary|test))\(", re.M)

_EXEMPT = ("third_party/", "tools/build_defs/", "tools/setup/")

# Visibility lists name the users of a target, not its dependencies.
_VISIBILITY = re.compile(r"visibility = \[[^\]]*\]")


# Paths that may depend on an addon: addons, programs, and the packages that assemble the
# library and the wheels.
_ADDON_USERS = ("addons/", "tests/", "examples/", "benchmarks/", "kernels/tf/BUILD",
                "tools/pip_package/")


def violations(path, text):
  """Returns a line for each native rule instead of a macro, and each wrong dependency."""
  if path.startswith(_EXEMPT):
    return []
  found = ["%s: %s: use the macros of //tools/build_defs" % (path, rule)
           for rule in _NATIVE.findall(text)]
  if '"//addons/' in _VISIBILITY.sub("", text) and not path.startswith(_ADDON_USERS):
    found.append("%s: nothing outside may depend on an addon" % path)
  return found


def named_in_a_build_file(path):
  """Returns whether the nearest BUILD file above a source names it.

  A list of tests may omit the ending that they share.
  """
  parts = path.split("/")
  for depth in range(len(parts) - 1, 0, -1):
    try:
      text = tree.read("/".join(parts[:depth] + ["BUILD"]))
    except OSError:
      continue
    name = "/".join(parts[depth:])
    stem = name.rsplit(".", 1)[0]
    names = {name, stem, re.sub("_u?test$", "", stem)}
    return any('"%s"' % n in text for n in names)
  return False


class BuildFilesTest(absltest.TestCase):

  def test_the_tree_obeys(self):
    found = []
    paths = [p for p in tree.files("BUILD", ".bzl")]
    self.assertGreater(len(paths), 10)
    for path in paths:
      found += violations(path, tree.read(path))
    self.assertEmpty(found, "\n" + "\n".join(found))

  def test_every_cpp_and_python_source_is_in_a_build_file(self):
    lost = []
    for path in tree.files(".py", ".cc", ".cu", ".cuh", ".h"):
      if not path.startswith(("kernels/", "python/", "addons/", "benchmarks/")):
        continue
      if not named_in_a_build_file(path):
        lost.append(path)
    self.assertEmpty(lost, "in no BUILD file:\n" + "\n".join(lost))

  def test_refuses_a_native_rule(self):
    self.assertLen(violations("kernels/a/BUILD", 'cc_library(\n    name = "a",\n)\n'), 1)
    self.assertEmpty(violations("kernels/a/BUILD", 'engine_library(\n)\n'))

  def test_refuses_a_dependency_on_an_addon(self):
    text = 'deps = ["//addons/sparse_operation_kit/exchange:route"],'
    self.assertLen(violations("kernels/tf/op_kernels/BUILD", text), 1)
    self.assertEmpty(violations("addons/sparse_operation_kit/tf/BUILD", text))


if __name__ == "__main__":
  absltest.main()

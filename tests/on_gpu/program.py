# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs one test program with its tables on TensorFlow's GPU.

  EV_TEST_DEVICE=/gpu:0 EV_TEST_STORAGE=hbm python tests/on_gpu/program.py TEST.py [ARG ...]

The package is the installed one. Test helpers, which no wheel contains, are imported from
the package's folders in this repository.
"""

import importlib
import os
import runpy
import sys
import unittest

import exemptions
import placement

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The suites import `deprecations` from there.
sys.path.append(os.path.join(_ROOT, "tools", "testing"))

# Packages with helpers for tests, and their folders in this repository.
_WITH_HELPERS = (
    ("embedding_variable.ops", "python/embedding_variable/ops"),
    ("embedding_variable.tools", "python/embedding_variable/tools"),
    ("sparse_operation_kit", "addons/sparse_operation_kit/python/sparse_operation_kit"),
)


def _find_helpers(path):
  """Lets the packages import their test helpers from this repository.

  Args:
    path: path of the program. The addon is imported only for its own tests.
  """
  for package, folder in _WITH_HELPERS:
    if not package.startswith("embedding_variable") and folder not in path:
      continue
    importlib.import_module(package).__path__.append(os.path.join(_ROOT, folder))


def _skip_exempt(program):
  """Skips the cases that exemptions.py lists."""
  storage = os.environ.get(placement.STORAGE, "hbm")
  on_test_device = bool(os.environ.get(placement.LIBRARY))
  init, run = unittest.TestCase.__init__, unittest.TestCase.run

  def why(case):
    return exemptions.why(program, case, storage, on_test_device)

  def init_or_skip_class(case, *args, **kwargs):
    init(case, *args, **kwargs)
    cls = type(case)
    reason = why(cls.__name__ + ".*")
    if reason is not None:  # skipped before the class is set up
      print("not run: %s: %s" % (case.id(), reason))
      cls.__unittest_skip__, cls.__unittest_skip_why__ = True, reason

  def run_or_skip(case, result=None):
    reason = why(case.id().split(".", 1)[-1])
    if reason is not None:
      print("not run: %s: %s" % (case.id(), reason))
      setattr(case, case._testMethodName, lambda: case.skipTest(reason))  # pylint: disable=protected-access
    return run(case, result)

  unittest.TestCase.__init__ = init_or_skip_class
  unittest.TestCase.run = run_or_skip


def main(argv):
  path = argv[1]
  sys.argv = argv[1:]
  sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
  placement.from_environment()
  if os.environ.get(placement.DEVICE):
    _skip_exempt(os.path.basename(path)[:-len(".py")])
  _find_helpers(os.path.abspath(path))
  try:
    runpy.run_path(path, run_name="__main__")
  finally:
    print("tables that were placed: %d" % placement.placed, flush=True)


if __name__ == "__main__":
  main(sys.argv)

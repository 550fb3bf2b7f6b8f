# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of installed: the counts if something cannot run."""

import os
import sys
from unittest import mock

from absl.testing import absltest

import installed

_PASSING = """
from absl.testing import absltest
class T(absltest.TestCase):
  def test_it(self):
    pass
absltest.main()
"""

_IMPORTS_NEIGHBOUR = """
from absl.testing import absltest
import neighbour
absltest.main()
"""


class InstalledTest(absltest.TestCase):

  def tests(self, **sources):
    folder = self.create_tempdir()
    for name, text in sources.items():
      folder.create_file(name + ".py", text)
    return folder.full_path

  def wheel_test(self, must, **kwargs):
    with mock.patch.object(installed, "environment", **kwargs):
      return installed.test_wheels("build", "1.15.0", ["a.whl"],
                                   self.tests(a_test=_PASSING), must)

  def test_missing_tensorflow_is_a_skip_with_its_reason(self):
    counts = self.wheel_test(False, side_effect=installed.Unavailable("no network"))
    self.assertEqual(counts.line(), "0 passed, 0 failed, 1 skipped")
    self.assertIn("a_test.py", counts.skipped[0])
    self.assertIn("no network", counts.skipped[0])

  def test_missing_tensorflow_is_a_failure_if_required(self):
    counts = self.wheel_test(True, side_effect=installed.Unavailable("no network"))
    self.assertLen(counts.failed, 1)

  def test_a_wheel_that_does_not_install_is_a_failure(self):
    with mock.patch.object(installed, "install", return_value="ERROR: bad wheel"):
      counts = self.wheel_test(False, return_value=sys.executable)
    self.assertEqual(counts.line(), "0 passed, 1 failed, 0 skipped")
    self.assertIn("bad wheel", counts.failed[0])

  def test_cases_are_counted(self):
    path = os.path.join(self.tests(a_test=_PASSING), "a_test.py")
    counts = installed.run_tests(sys.executable, [path], "label")
    self.assertEqual(counts.line(), "1 passed, 0 failed, 0 skipped")

  def test_a_neighbouring_module_is_not_importable(self):
    folder = self.tests(a_test=_IMPORTS_NEIGHBOUR, neighbour="")
    with mock.patch.dict(os.environ, {"PYTHONPATH": folder}):
      counts = installed.run_tests(sys.executable,
                                   [os.path.join(folder, "a_test.py")], "label")
    self.assertLen(counts.failed, 1)


if __name__ == "__main__":
  absltest.main()

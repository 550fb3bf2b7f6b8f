# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the version check and the search for the library."""

import os

from absl.testing import absltest
from absl.testing import parameterized

from embedding_variable import _lib


class LibTest(parameterized.TestCase):

  @parameterized.parameters("1.15.0", "1.15.5", "1.15.0-rc3")
  def test_accepts_tensorflow_1_15(self, version):
    _lib.check_version(version)

  @parameterized.parameters("1.14.0", "1.16.0", "2.1.15", "1.150.0", "")
  def test_refuses_other_versions_and_names_them(self, version):
    with self.assertRaisesRegex(ImportError,
                                "TensorFlow >=1.15,<1.16.*%s" % version):
      _lib.check_version(version)

  def test_library_exists(self):
    self.assertTrue(os.path.exists(_lib.library_path()))

  def test_the_error_for_a_missing_library_lists_the_places(self):
    there = _lib._LIBRARY
    try:
      _lib._LIBRARY = "libabsent.so"
      with self.assertRaisesRegex(ImportError,
                                  "libabsent.so was not found.*kernels/tf"):
        _lib.library_path()
    finally:
      _lib._LIBRARY = there

  def test_loads_once(self):
    module = _lib.load()
    self.assertIs(module, _lib.load())
    self.assertTrue(callable(module.ev_gather))


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the version check and the search for the library."""

import os

from absl.testing import absltest
from absl.testing import parameterized

from embedding_variable import _lib


class LibTest(parameterized.TestCase):

  @parameterized.parameters(("1.15.0", "1.15"), ("1.15.5", "1.15"), ("1.15.0-rc3", "1.15"),
                            ("2.15.1", "2.15"))
  def test_accepts_the_version_that_it_was_built_for(self, version, built_for):
    _lib.check_version(version, built_for)

  @parameterized.parameters("1.14.0", "2.1.15", "1.150.0", "2.15.1", "2.16.1", "")
  def test_refuses_other_versions_and_names_them(self, version):
    with self.assertRaisesRegex(
        ImportError, r"built for TensorFlow 1\.15, but TensorFlow %s.*"
        r"1\.15, 2\.11, 2\.15, 2\.21.*pip install 'tensorflow==1\.15\.\*'" % version):
      _lib.check_version(version, "1.15")

  def test_names_the_build_for_a_supported_version(self):
    with self.assertRaisesRegex(ImportError, "make wheel TF=2.15$"):
      _lib.check_version("2.15.1", "1.15")
    with self.assertRaisesRegex(ImportError, r"tensorflow==2\.21\.\*'$"):
      _lib.check_version("2.16.1", "2.21")

  def test_library_exists(self):
    self.assertTrue(os.path.exists(_lib.library_path()))

  def test_the_error_for_a_missing_library_lists_the_places(self):
    library = _lib._LIBRARY
    try:
      _lib._LIBRARY = "libabsent.so"
      with self.assertRaisesRegex(ImportError,
                                  "libabsent.so was not found.*kernels/tf"):
        _lib.library_path()
    finally:
      _lib._LIBRARY = library

  def test_loads_once(self):
    module = _lib.load()
    self.assertIs(module, _lib.load())
    self.assertTrue(callable(module.ev_gather))


if __name__ == "__main__":
  absltest.main()

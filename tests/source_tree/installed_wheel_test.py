# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Bazel's tests do not import a wheel that is installed in .venv.

This test depends on a part of the package, whose folder in the runfiles has no
__init__.py of its own.
"""

import os
import sys

from absl.testing import absltest


class InstalledWheelTest(absltest.TestCase):

  def test_the_source_tree_comes_first(self):
    site_packages = self.create_tempdir()
    site_packages.create_file("embedding_variable/__init__.py", "INSTALLED = True\n")
    sys.path.append(site_packages.full_path)
    import embedding_variable  # pylint: disable=g-import-not-at-top
    self.assertFalse(hasattr(embedding_variable, "INSTALLED"))
    self.assertStartsWith(
        os.path.abspath(embedding_variable.__file__), os.environ["TEST_SRCDIR"])


if __name__ == "__main__":
  absltest.main()

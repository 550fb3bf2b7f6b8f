# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the version, and the check for another distribution's files."""

import os
import subprocess
import sys
from unittest import mock

from absl.testing import absltest

from embedding_variable import distribution


class DistributionTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.site = self.create_tempdir()
    package = self.site.mkdir("embedding_variable")
    patch = mock.patch.object(distribution, "__file__",
                              os.path.join(package.full_path, "distribution.py"))
    patch.start()
    self.addCleanup(patch.stop)

  def on_path(self, *folders):
    patch = mock.patch.object(sys, "path", list(folders))
    patch.start()
    self.addCleanup(patch.stop)

  def error(self):
    with self.assertRaises(ImportError) as raised:
      distribution.check_alone()
    return str(raised.exception)

  def test_version_of_a_wheel(self):
    self.assertEqual(distribution.version(), "unknown")
    self.site.mkdir("sok_stock_tf_hps-9.9.9.dist-info")
    self.assertEqual(distribution.version(), "unknown")
    self.site.mkdir("sok_stock_tf-1.2.3.dev4.dist-info")
    self.assertEqual(distribution.version(), "1.2.3.dev4")

  def test_alone(self):
    self.site.mkdir("sok_stock_tf-0.1.0.dist-info")
    self.site.mkdir("numpy-1.18.5.dist-info")
    self.on_path(self.site.full_path)
    distribution.check_alone()

  def test_nvidias_is_refused_with_what_to_type(self):
    self.site.mkdir("merlin_sok-2.1.0.dist-info")
    self.site.mkdir("sparse_operation_kit-1.1.2-py3.7-linux-x86_64.egg-info")
    self.on_path(self.site.full_path)
    error = self.error()
    self.assertIn(
        "\n  pip uninstall -y merlin-sok sparse-operation-kit sok-stock-tf\n", error)
    self.assertIn("found merlin-sok 2.1.0, sparse-operation-kit 1.1.2 in " +
                  self.site.full_path, error)

  def test_wheels_of_this_project_under_the_first_name_are_refused(self):
    self.site.mkdir("sparse_operation_kit-0.1.0.dist-info")
    self.on_path(self.site.full_path)
    self.assertIn("before it was called sok-stock-tf", self.error())

  def test_a_folder_is_looked_at_if_it_is_imported_from_first(self):
    other = self.create_tempdir()
    other.mkdir("merlin_sok-2.1.0.dist-info")
    self.on_path("/no/such/folder", other.full_path, self.site.full_path)
    self.assertIn("in " + other.full_path, self.error())
    self.on_path(self.site.full_path, other.full_path)
    distribution.check_alone()


class ImportTest(absltest.TestCase):

  def test_importing_the_packages_beside_another_distribution_fails(self):
    other = self.create_tempdir()
    other.mkdir("sparse_operation_kit-1.1.2.dist-info")
    path = os.pathsep.join([other.full_path] + [p for p in sys.path if p])
    done = subprocess.run(
        [sys.executable, "-c", "import embedding_variable"], stderr=subprocess.PIPE,
        universal_newlines=True, env=dict(os.environ, PYTHONPATH=path))
    self.assertNotEqual(done.returncode, 0)
    self.assertIn("ImportError: sok-stock-tf and sparse-operation-kit both provide",
                  done.stderr)

  def test_the_package_has_its_version(self):
    import embedding_variable  # pylint: disable=g-import-not-at-top
    self.assertEqual(embedding_variable.__version__, distribution.version())


if __name__ == "__main__":
  absltest.main()

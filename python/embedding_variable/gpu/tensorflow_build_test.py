# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests which TensorFlow is accepted, and the errors for others."""

import os

from absl.testing import absltest
from absl.testing import parameterized

from embedding_variable.gpu import errors
from embedding_variable.gpu import tensorflow_build
from embedding_variable.gpu import testing


class TensorFlowBuildTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = self.create_tempdir().full_path
    self.module = testing.module_bytes(ptx=[60, 70], machine_code=[70])

  @parameterized.parameters("10", "10.0", 10)
  def test_takes_a_build_for_cuda_10(self, cuda):
    testing.write_tensorflow(self.folder, cuda=cuda, modules=[self.module] * 3)
    build = tensorflow_build.examine(self.folder, "1.15.0")
    self.assertEqual((build.version, build.folder), ("1.15.0", self.folder))
    self.assertLen(build.modules, 3)
    self.assertTrue(os.path.exists(build.library))

  @parameterized.parameters(
      ("2.4.0", {}, "is no 1.15"),
      ("1.15.5", {"is_cuda_build": False}, "is a build without CUDA"),
      ("1.15.5", {"modules": []}, "is a build without CUDA"),
      ("1.15.5", {"cuda": "11.0"}, "is a build for CUDA 11.0: CUDA 10.0 is needed"),
      ("1.15.5", {"cuda": "10.1"}, "is a build for CUDA 10.1"),
  )
  def test_refuses_other_builds_and_names_the_package(self, version, parts, says):
    testing.write_tensorflow(self.folder, **dict({"modules": [self.module]}, **parts))
    with self.assertRaises(errors.GpuError) as e:
      tensorflow_build.examine(self.folder, version)
    self.assertIn("TensorFlow %s in %s %s" % (version, self.folder, says),
                  str(e.exception))
    self.assertIn("pip install tensorflow==1.15.0", str(e.exception))

  def test_a_damaged_one_is_named(self):
    testing.write_tensorflow(self.folder, modules=[self.module])
    os.remove(os.path.join(self.folder, "python/_pywrap_tensorflow_internal.so"))
    with self.assertRaisesRegex(errors.GpuError, "cannot be read: .*No such file"):
      tensorflow_build.examine(self.folder, "1.15.0")

  def test_the_one_that_this_python_has(self):
    from tensorflow.python.platform import build_info  # pylint: disable=g-import-not-at-top
    if build_info.is_cuda_build:
      self.assertNotEmpty(tensorflow_build.installed().modules)
    else:
      with self.assertRaisesRegex(errors.GpuError, "is a build without CUDA"):
        tensorflow_build.installed()


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The wheel's command for TensorFlow's GPU build, on a machine without a GPU."""

import ctypes
import os
import subprocess
import sys

from absl.testing import absltest
import tensorflow as tf

from embedding_variable.gpu import errors
from embedding_variable.gpu import links
from embedding_variable.gpu import tensorflow_build

_LIBRARIES = ("libev_cublas10.so", "libev_cudart10.so", "libev_nothing.so")


def _has_driver():
  try:
    ctypes.CDLL("libcuda.so.1")
    return True
  except OSError:
    return False


class GpuTest(absltest.TestCase):

  def test_libraries_lie_in_the_package(self):
    folder = os.path.dirname(links.__file__)
    for name in _LIBRARIES:
      self.assertEqual(links.our_library(name), os.path.join(folder, name))

  def test_knows_the_wheels_of_the_index(self):
    if tf.__version__ == "1.15.0":
      build = tensorflow_build.installed()
      self.assertLen(build.modules, 229)
      self.assertLen([m for m in build.modules if 70 in m.ptx], 228)
    else:
      is_1 = tf.__version__.startswith("1.")
      error = "is a build without CUDA" if is_1 else r"is no 1\.15"
      with self.assertRaisesRegex(errors.GpuError, error):
        tensorflow_build.installed()

  def test_tensorflow_calls_our_libcudart(self):
    if tf.__version__ != "1.15.0":
      self.skipTest("a build without CUDA calls none")
    if _has_driver():
      self.skipTest("this machine has a driver, and may have cards")
    folder = self.create_tempdir().full_path
    os.symlink(links.our_library("libev_cudart10.so"),
               os.path.join(folder, "libcudart.so.10.0"))
    script = """
import ctypes, os, sys
framework = ctypes.CDLL(os.path.join(sys.argv[1], "libtensorflow_framework.so.1"))
framework.cudaGetErrorString.restype = ctypes.c_char_p
error = framework.cudaGetDeviceCount(ctypes.byref(ctypes.c_int()))
print(error, framework.cudaGetErrorString(error).decode())
"""
    said = subprocess.check_output(
        [sys.executable, "-c", script, tf.sysconfig.get_lib()],
        env=dict(os.environ, LD_LIBRARY_PATH=folder), stderr=subprocess.DEVNULL,
        universal_newlines=True)
    self.assertEqual(said.strip(),
                     "35 no NVIDIA driver, or it does not match its library libcuda.so.1")

  def test_runs_as_a_program(self):
    if _has_driver():
      self.skipTest("this machine has a driver: set-up would begin")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "embedding_variable.gpu", "setup",
         os.path.join(self.create_tempdir().full_path, "a")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    self.assertEqual(done.returncode, 2)
    self.assertIn("error: this machine has no NVIDIA driver", done.stderr)


if __name__ == "__main__":
  absltest.main()

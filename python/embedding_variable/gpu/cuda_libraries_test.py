# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests finding CUDA's libraries in folders like those of real machines, and their
links.
"""

import os
import shutil

from absl.testing import absltest

from embedding_variable.gpu import cuda_libraries
from embedding_variable.gpu import elf
from embedding_variable.gpu import errors
from embedding_variable.gpu import links
from embedding_variable.gpu import testing


class CudaLibrariesTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.top = os.path.realpath(self.create_tempdir().full_path)

  def path(self, *parts):
    return os.path.join(self.top, *parts)

  def find(self, newest=13, cuda_dir=None, environ=None, path=()):
    looked_at = cuda_libraries.places(cuda_dir, environ or {}, list(path))
    # Excludes the libraries of the machine that runs the test.
    looked_at = [p for p in looked_at if p.name not in ("/usr", "/usr/local/cuda",
                                                        "/opt/cuda")]
    return cuda_libraries.find(looked_at, newest)

  def test_a_toolkit_of_each_layout(self):
    for layout in ("lib64", "lib", "targets/x86_64-linux/lib", "lib/x86_64-linux-gnu"):
      top = self.path(layout.replace("/", "_"))
      testing.write_cuda(os.path.join(top, layout), 13)
      found = self.find(cuda_dir=top)
      self.assertEqual(found.version, 13)
      self.assertEqual(list(found.paths), ["cublas", "cufft", "curand", "cusolver",
                                           "cusparse"])
      self.assertEqual(found.paths["cufft"], os.path.join(top, layout, "libcufft.so.12"))

  def test_the_environment_names_a_toolkit(self):
    testing.write_cuda(self.path("a/lib64"), 12)
    testing.write_cuda(self.path("b/lib64"), 13)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
      found = self.find(environ={variable: self.path("a")})
      self.assertEqual((found.version, found.place),
                       (12, "%s=%s" % (variable, self.path("a"))))
    found = self.find(environ={"CUDA_HOME": self.path("b"), "CUDA_PATH": self.path("a")})
    self.assertEqual(found.version, 13)

  def test_nvcc_on_the_path_is_followed(self):
    testing.write_cuda(self.path("cuda-13/lib64"), 13)
    os.makedirs(self.path("cuda-13/bin"))
    os.makedirs(self.path("bin"))
    with open(self.path("cuda-13/bin/nvcc"), "w") as f:
      f.write("#!/bin/sh\n")
    os.chmod(self.path("cuda-13/bin/nvcc"), 0o755)
    os.symlink(self.path("cuda-13/bin/nvcc"), self.path("bin/nvcc"))
    found = self.find(environ={"PATH": self.path("bin")})
    self.assertEqual(found.paths["curand"], self.path("cuda-13/lib64/libcurand.so.10"))

  def test_packages_of_both_layouts(self):
    testing.write_cuda(self.path("new/nvidia/cu13/lib"), 13)
    found = self.find(path=[self.path("none"), self.path("new")])
    self.assertEqual(found.version, 13)
    testing.write_cuda(self.path("all"), 12)
    for name in ("cublas.so.12", "cufft.so.11", "curand.so.10", "cusolver.so.11",
                 "cusparse.so.12"):
      folder = self.path("old/nvidia", name.split(".")[0], "lib")
      os.makedirs(folder)
      os.rename(self.path("all", "lib" + name), os.path.join(folder, "lib" + name))
    found = self.find(path=[self.path("old")])
    self.assertEqual(found.version, 12)
    self.assertEqual(found.place, "the nvidia-* packages in %s" % self.path("old"))

  def test_not_newer_than_the_driver(self):
    testing.write_cuda(self.path("lib64"), 13)
    testing.write_cuda(self.path("lib64"), 12)
    self.assertEqual(self.find(13, self.top).version, 13)
    self.assertEqual(self.find(12, self.top).version, 12)
    self.assertEqual(self.find(14, self.top).version, 13)
    with self.assertRaisesRegex(errors.GpuError, "nvidia-cublas-cu12 "):
      self.find(11, self.top)

  def test_an_incomplete_place_is_passed_over(self):
    testing.write_cuda(self.path("a/lib64"), 13, without=["cusparse"])
    testing.write_cuda(self.path("b/lib64"), 13)
    found = self.find(environ={"CUDA_HOME": self.path("a"), "CUDA_PATH": self.path("b")})
    self.assertEqual(found.place, "CUDA_PATH=%s" % self.path("b"))

  def test_two_versions_are_not_mixed(self):
    testing.write_cuda(self.path("lib64"), 13, without=["cublas"])
    testing.write_cuda(self.path("lib64"), 12, without=["cusolver"])
    with self.assertRaises(errors.GpuError) as e:
      self.find(13, self.top)
    self.assertIn("no libcublas.so.13\n", str(e.exception))

  def test_the_error_lists_missing_libraries_and_the_packages(self):
    testing.write_cuda(self.path("a/lib64"), 13, without=["cusparse", "cufft"])
    with self.assertRaises(errors.GpuError) as e:
      self.find(environ={"CUDA_HOME": self.path("a"), "CUDA_PATH": self.path("b")})
    self.assertEqual(
        str(e.exception),
        "CUDA 12 or 13's libraries were not found together:\n"
        "  CUDA_HOME=%s: no libcufft.so.12, libcusparse.so.12\n"
        "  CUDA_PATH=%s: no libcublas.so.13, libcufft.so.12, libcurand.so.10, "
        "libcusolver.so.12, libcusparse.so.12\n"
        "Install the CUDA toolkit 13, or: pip install nvidia-cublas nvidia-cufft "
        "nvidia-curand nvidia-cusolver nvidia-cusparse" % (self.path("a"), self.path("b")))

  def cuda_with_dependencies(self):
    testing.write_cuda(self.path("lib64"), 13)
    testing.write_library(self.path("lib64/libcublas.so.13"), "libcublas.so.13",
                          ["libcublasLt.so.13", "libc.so.6", "libcuda.so.1"])
    testing.write_library(self.path("lib64/libcublasLt.so.13"), "libcublasLt.so.13")
    testing.write_library(self.path("lib64/libcusolver.so.12"), "libcusolver.so.12",
                          ["libcublas.so.13", "libnvJitLink.so.13", "libcurious.so.1"],
                          runpath="$ORIGIN/../jit")
    testing.write_library(self.path("jit/libnvJitLink.so.13"), "libnvJitLink.so.13")
    testing.write_library(self.path("lib64/libcuda.so.1"), "libcuda.so.1")
    return self.find(cuda_dir=self.top)

  def test_dependencies_of_dependencies_are_found_where_the_loader_would(self):
    found = cuda_libraries.with_dependencies(self.cuda_with_dependencies())
    self.assertEqual(dict(found), {
        "libcublasLt.so.13": self.path("lib64/libcublasLt.so.13"),
        "libcublas.so.13": self.path("lib64/libcublas.so.13"),
        "libnvJitLink.so.13": self.path("jit/libnvJitLink.so.13"),
    })

  def test_a_damaged_library_is_named(self):
    cuda = self.cuda_with_dependencies()
    with open(cuda.paths["cufft"], "w") as f:
      f.write("INPUT(-lcufft)")
    with self.assertRaisesRegex(errors.GpuError, "libcufft.so.12 is not a 64-bit"):
      cuda_libraries.with_dependencies(cuda)

  def test_the_folder_has_cuda_10s_names(self):
    planned = links.plan(self.cuda_with_dependencies())
    folder = self.path("set-up/lib")
    os.makedirs(os.path.dirname(folder))
    links.lay_out(planned, folder)
    self.assertCountEqual(os.listdir(folder), [
        "libcudart.so.10.0", "libcublas.so.10.0", "libcublas_behind.so", "libcudnn.so.7",
        "libcufft.so.10.0", "libcurand.so.10.0", "libcusolver.so.10.0",
        "libcusparse.so.10.0", "libcublasLt.so.13", "libcublas.so.13",
        "libnvJitLink.so.13"])
    for name, soname in (("libcufft.so.10.0", "libcufft.so.12"),
                         ("libcublas_behind.so", "libcublas.so.13"),
                         ("libcublasLt.so.13", "libcublasLt.so.13"),
                         ("libcudart.so.10.0", "libcudart.so.10.0"),
                         ("libcublas.so.10.0", "libcublas.so.10.0"),
                         ("libcudnn.so.7", "libcudnn.so.7")):
      self.assertEqual(elf.Elf(os.path.join(folder, name)).soname, soname, name)
    # A wheel may be updated; a toolkit stays where it is.
    self.assertFalse(os.path.islink(os.path.join(folder, "libcudart.so.10.0")))
    self.assertTrue(os.path.islink(os.path.join(folder, "libcufft.so.10.0")))

  def test_laying_out_again_replaces(self):
    cuda = self.cuda_with_dependencies()
    folder = self.path("set-up/lib")
    os.makedirs(os.path.dirname(folder))
    links.lay_out(links.plan(cuda), folder)
    os.remove(self.path("lib64/libcublas.so.13"))
    testing.write_library(self.path("lib64/libcublas.so.13"), "libcublas.so.13")
    links.lay_out(links.plan(cuda), folder)
    self.assertNotIn("libcublasLt.so.13", os.listdir(folder))
    self.assertLen(os.listdir(os.path.dirname(folder)), 2)  # the link, and its folder
    shutil.rmtree(os.path.realpath(folder))
    os.remove(folder)
    self.assertEmpty(os.listdir(os.path.dirname(folder)))

  def test_a_libcudart_of_the_users(self):
    cuda = self.cuda_with_dependencies()
    theirs = self.path("theirs.so")
    testing.write_library(theirs, "libcudart.so.10.0")
    self.assertEqual(links.plan(cuda, theirs)["libcudart.so.10.0"], theirs)
    testing.write_library(theirs, "libcudart.so.11.0")
    with self.assertRaisesRegex(errors.GpuError,
                                "is libcudart.so.11.0, expected libcudart.so.10.0"):
      links.plan(cuda, theirs)
    with self.assertRaisesRegex(errors.GpuError, "--cudart: .*No such file"):
      links.plan(cuda, self.path("none.so"))


if __name__ == "__main__":
  absltest.main()

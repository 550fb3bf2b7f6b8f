# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the driver's answers, the stored state, and when it becomes invalid."""

import os

from absl.testing import absltest
from absl.testing import parameterized

from embedding_variable.gpu import cuda_libraries
from embedding_variable.gpu import driver as driver_lib
from embedding_variable.gpu import errors
from embedding_variable.gpu import links
from embedding_variable.gpu import places as places_lib
from embedding_variable.gpu import state
from embedding_variable.gpu import tensorflow_build

_H100 = driver_lib.Gpu(0, "NVIDIA H100 80GB HBM3", 90, 80 << 30)
_H200 = driver_lib.Gpu(0, "NVIDIA H200", 90, 141 << 30)
_DRIVER = driver_lib.Driver("580.159.04", (13, 0), [_H100])


class DriverTest(absltest.TestCase):

  def test_queries_the_driver(self):
    found = driver_lib.look(links.our_library("libcuda_stand_in.so"))
    self.assertEqual(found.cuda, (13, 0))
    self.assertEqual(found.gpus, [
        driver_lib.Gpu(0, "stand-in 0", 90, 80 << 30),
        driver_lib.Gpu(1, "stand-in 1", 91, 81 << 30)])

  def test_without_a_driver(self):
    with self.assertRaisesRegex(errors.GpuError, "this machine has no NVIDIA driver"):
      driver_lib.look("libcuda_missing.so.1")

  def test_reads_the_version_from_the_kernel_module(self):
    path = self.create_tempfile().full_path
    for line, version in (
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12", "535.183.01"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release "
         "Build  (x)", "580.159.04"),
        ("nothing of the kind", None)):
      with open(path, "w") as f:
        f.write(line + "\nGCC version:  gcc version 12.2.0\n")
      self.assertEqual(driver_lib._kernel_version(path), version)
    self.assertIsNone(driver_lib._kernel_version(path + ".none"))


class PlacesTest(parameterized.TestCase):

  @parameterized.parameters(
      ({"TF_EV_GPU_DIR": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
      ({"XDG_CACHE_HOME": "/b"}, "/b/sparse_operation_kit/gpu"),
      ({}, os.path.expanduser("~/.cache/sparse_operation_kit/gpu")))
  def test_the_default_folder(self, environ, folder):
    self.assertEqual(places_lib.default_directory(environ), folder)

  @parameterized.parameters(
      (None, "/d/lib", None), ("", "/d/lib", None), ("/x:/y", "/d/lib:/x:/y", "true"),
      ("/x:/d/lib::/y", "/d/lib:/x:/y", ""))
  def test_the_variables(self, before, after, waits):
    environ = {} if before is None else {"LD_LIBRARY_PATH": before}
    if waits is not None:
      environ["TF_SYNC_ON_FINISH"] = waits
    self.assertEqual(list(places_lib.variables(places_lib.Places("/d"), environ).items()), [
        ("LD_LIBRARY_PATH", after), ("CUDA_CACHE_PATH", "/d/cache"),
        ("CUDA_CACHE_MAXSIZE", "4294967296"), ("CUDA_CACHE_DISABLE", "0"),
    ] + ([] if waits else [("TF_SYNC_ON_FINISH", "false")]))

  def test_counts_the_cache(self):
    places = places_lib.Places(self.create_tempdir().full_path)
    self.assertEqual(places_lib.cache_bytes(places), 0)
    for name in ("a", "0/1/b"):
      path = os.path.join(places.cache, name)
      os.makedirs(os.path.dirname(path), exist_ok=True)
      with open(path, "wb") as f:
        f.write(b"x" * 1000)
    self.assertEqual(places_lib.cache_bytes(places), 2000)


class StateTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.places = places_lib.Places(self.create_tempdir().full_path)
    for folder in (self.places.libraries, self.places.cache):
      os.makedirs(folder)
    build = tensorflow_build.Build("1.15.0", "/tf", "/tf/a.so", [])
    cuda = cuda_libraries.Cuda(13, "/usr/local/cuda", {}, [])
    self.facts = state.describe(build, _DRIVER, cuda)
    state.write(self.places.state, self.facts)

  def test_reads_what_was_written(self):
    self.assertEqual(state.read(self.places), self.facts)
    self.assertEqual(self.facts["gpus"], [
        {"name": "NVIDIA H100 80GB HBM3", "capability": "9.0", "memory": 80 << 30}])
    state.check(state.read(self.places), _DRIVER, self.places)

  def test_fewer_gpus_and_two_of_a_kind_are_no_change(self):
    state.check(self.facts, _DRIVER._replace(gpus=[_H100, _H100._replace(ordinal=1)]),
                self.places)
    both = dict(self.facts, gpus=self.facts["gpus"] + [{"name": "NVIDIA H200"}])
    state.check(both, _DRIVER, self.places)

  def test_another_driver(self):
    with self.assertRaises(errors.GpuError) as e:
      state.check(self.facts, _DRIVER._replace(version="590.1.1"), self.places)
    for part in ("set up for driver 580.159.04", "this machine has driver 590.1.1",
                 "python -m embedding_variable.gpu setup %s" % self.places.top):
      self.assertIn(part, str(e.exception))

  def test_another_card(self):
    with self.assertRaises(errors.GpuError) as e:
      state.check(self.facts, _DRIVER._replace(gpus=[_H100, _H200]), self.places)
    for part in ("set up for NVIDIA H100 80GB HBM3", "this machine has NVIDIA H200",
                 "python -m embedding_variable.gpu setup %s" % self.places.top):
      self.assertIn(part, str(e.exception))

  def test_cuda_has_gone(self):
    os.symlink("/nowhere/libcufft.so.12",
               os.path.join(self.places.libraries, "libcufft.so.10.0"))
    with self.assertRaisesRegex(errors.GpuError, "leads to /nowhere/libcufft.so.12"):
      state.check(self.facts, _DRIVER, self.places)

  def test_the_cache_has_gone(self):
    os.rmdir(self.places.cache)
    with self.assertRaisesRegex(errors.GpuError, "has lost its folder cache"):
      state.check(self.facts, _DRIVER, self.places)

  @parameterized.parameters((None, "holds no finished set-up"), ("{", "cannot be read"),
                            ("{}", "another version"), ("[]", "another version"),
                            ('{"format": 99}', "another version"))
  def test_without_a_state_that_can_be_read(self, text, says):
    os.remove(self.places.state)
    if text is not None:
      with open(self.places.state, "w") as f:
        f.write(text)
    with self.assertRaisesRegex(errors.GpuError, says) as e:
      state.read(self.places)
    self.assertIn("embedding_variable.gpu setup %s" % self.places.top, str(e.exception))


if __name__ == "__main__":
  absltest.main()

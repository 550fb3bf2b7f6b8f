# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests our libcudart.so.10.0 and libcublas.so.10.0 with stand-ins for driver and
cuBLAS.

The reference for the structs is CUDA 10.0's own layout. It is declared again in this
test and checked at the offsets that TensorFlow 1.15.0's machine code reads.
"""

import ctypes
import os
import subprocess
import sys

from absl.testing import absltest

from embedding_variable.gpu import links

_INVALID_DEVICE, _INVALID_VALUE, _ILLEGAL_ADDRESS, _NO_DRIVER = 10, 11, 77, 35


class Properties(ctypes.Structure):
  """CUDA 10.0's cudaDeviceProp: (name, type, numbers of the driver's attributes)."""
  i, z = ctypes.c_int, ctypes.c_size_t
  ATTRIBUTES = [
      ("name", ctypes.c_char * 256, None), ("uuid", ctypes.c_char * 16, None),
      ("luid", ctypes.c_char * 8, None), ("luidDeviceNodeMask", ctypes.c_uint, None),
      ("totalGlobalMem", z, None), ("sharedMemPerBlock", z, 8), ("regsPerBlock", i, 12),
      ("warpSize", i, 10), ("memPitch", z, 11), ("maxThreadsPerBlock", i, 1),
      ("maxThreadsDim", i * 3, (2, 3, 4)), ("maxGridSize", i * 3, (5, 6, 7)),
      ("clockRate", i, 13), ("totalConstMem", z, 9), ("major", i, 75), ("minor", i, 76),
      ("textureAlignment", z, 14), ("texturePitchAlignment", z, 51),
      ("deviceOverlap", i, 15), ("multiProcessorCount", i, 16),
      ("kernelExecTimeoutEnabled", i, 17), ("integrated", i, 18),
      ("canMapHostMemory", i, 19), ("computeMode", i, 20), ("maxTexture1D", i, 21),
      ("maxTexture1DMipmap", i, 77), ("maxTexture1DLinear", i, 69),
      ("maxTexture2D", i * 2, (22, 23)), ("maxTexture2DMipmap", i * 2, (73, 74)),
      ("maxTexture2DLinear", i * 3, (70, 71, 72)),
      ("maxTexture2DGather", i * 2, (45, 46)), ("maxTexture3D", i * 3, (24, 25, 26)),
      ("maxTexture3DAlt", i * 3, (47, 48, 49)), ("maxTextureCubemap", i, 52),
      ("maxTexture1DLayered", i * 2, (42, 43)),
      ("maxTexture2DLayered", i * 3, (27, 28, 29)),
      ("maxTextureCubemapLayered", i * 2, (53, 54)), ("maxSurface1D", i, 55),
      ("maxSurface2D", i * 2, (56, 57)), ("maxSurface3D", i * 3, (58, 59, 60)),
      ("maxSurface1DLayered", i * 2, (61, 62)),
      ("maxSurface2DLayered", i * 3, (63, 64, 65)), ("maxSurfaceCubemap", i, 66),
      ("maxSurfaceCubemapLayered", i * 2, (67, 68)), ("surfaceAlignment", z, 30),
      ("concurrentKernels", i, 31), ("ECCEnabled", i, 32), ("pciBusID", i, 33),
      ("pciDeviceID", i, 34), ("pciDomainID", i, 50), ("tccDriver", i, 35),
      ("asyncEngineCount", i, 40), ("unifiedAddressing", i, 41),
      ("memoryClockRate", i, 36), ("memoryBusWidth", i, 37), ("l2CacheSize", i, 38),
      ("maxThreadsPerMultiProcessor", i, 39), ("streamPrioritiesSupported", i, 78),
      ("globalL1CacheSupported", i, 79), ("localL1CacheSupported", i, 80),
      ("sharedMemPerMultiprocessor", z, 81), ("regsPerMultiprocessor", i, 82),
      ("managedMemory", i, 83), ("isMultiGpuBoard", i, 84),
      ("multiGpuBoardGroupID", i, 85), ("hostNativeAtomicSupported", i, 86),
      ("singleToDoublePrecisionPerfRatio", i, 87), ("pageableMemoryAccess", i, 88),
      ("concurrentManagedAccess", i, 89), ("computePreemptionSupported", i, 90),
      ("canUseHostPointerForRegisteredMem", i, 91), ("cooperativeLaunch", i, 95),
      ("cooperativeMultiDeviceLaunch", i, 96), ("sharedMemPerBlockOptin", z, 97),
      ("pageableMemoryAccessUsesHostPageTables", i, 100),
      ("directManagedMemAccessFromHost", i, 101),
  ]
  _fields_ = [(name, kind) for name, kind, _ in ATTRIBUTES]


# Size of the struct and offsets in TensorFlow 1.15.0's machine code.
_SIZE = 712
_READ_AT = {"totalGlobalMem": 288, "clockRate": 348, "major": 360, "minor": 364,
            "multiProcessorCount": 388, "memoryClockRate": 608, "memoryBusWidth": 612,
            "l2CacheSize": 616, "sharedMemPerMultiprocessor": 640,
            "regsPerMultiprocessor": 648}


class PointerAttributes(ctypes.Structure):
  """CUDA 10.0's cudaPointerAttributes."""
  _fields_ = [("memoryType", ctypes.c_int), ("type", ctypes.c_int),
              ("device", ctypes.c_int), ("devicePointer", ctypes.c_void_p),
              ("hostPointer", ctypes.c_void_p), ("isManaged", ctypes.c_int)]


def in_child():
  """Returns whether this process was started by a test, with the stand-ins."""
  return "CUDA10_CHILD" in os.environ


class StandInTestCase(absltest.TestCase):
  """Runs a test again in a process that finds the libraries by CUDA 10.0's names."""

  def child(self, with_driver=True):
    """Runs this test in such a process. Returns True in that process; False in this
    one, once it passed.
    """
    if in_child():
      return True
    folder = self.create_tempdir().full_path
    names = {"libcudart.so.10.0": links.our_library("libev_cudart10.so"),
             "libcublas.so.10.0": links.our_library("libev_cublas10.so"),
             "libcublas_behind.so": links.our_library("libcublas_stand_in.so")}
    if with_driver:
      names["libcuda.so.1"] = links.our_library("libcuda_stand_in.so")
    for name, path in names.items():
      os.symlink(os.path.abspath(path), os.path.join(folder, name))
    environ = dict(os.environ, LD_LIBRARY_PATH=folder, CUDA10_CHILD="1",
                   PYTHONPATH=os.pathsep.join(sys.path))
    environ.pop("TESTBRIDGE_TEST_ONLY", None)
    environ.pop("XML_OUTPUT_FILE", None)
    done = subprocess.run(
        [sys.executable, os.path.abspath(__file__), "%s.%s" % (
            type(self).__name__, self._testMethodName)],
        env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        universal_newlines=True)
    self.assertEqual(done.returncode, 0, done.stdout)
    self.assertIn("Ran 1 test", done.stdout)
    return False


class CudartTest(StandInTestCase):

  def test_every_property_is_where_cuda_10_has_it(self):
    if not self.child():
      return
    self.assertEqual(ctypes.sizeof(Properties), _SIZE)
    for name, offset in _READ_AT.items():
      self.assertEqual(getattr(Properties, name).offset, offset, name)
    cuda = ctypes.CDLL("libcudart.so.10.0")
    # Bytes after the struct must not change.
    memory = ctypes.create_string_buffer(b"\x5a" * (_SIZE + 64), _SIZE + 64)
    for device in (0, 1):
      self.assertEqual(cuda.cudaGetDeviceProperties(memory, device), 0)
      self.assertEqual(memory.raw[_SIZE:], b"\x5a" * 64)
      found = Properties.from_buffer_copy(memory)
      self.assertEqual(found.name, b"stand-in %d" % device)
      self.assertEqual(found.uuid, b"%d" % device * 16)
      self.assertEqual(found.totalGlobalMem, (80 + device) << 30)
      for name, kind, attribute in Properties.ATTRIBUTES:
        if attribute is None:
          continue
        values = [{75: 9, 76: device}.get(a, 1000 * (device + 1) + a)
                  for a in (attribute if isinstance(attribute, tuple) else [attribute])]
        got = getattr(found, name)
        self.assertEqual(list(got) if isinstance(attribute, tuple) else [got], values, name)
        self.assertLen(values, getattr(kind, "_length_", 1), name)

  def test_a_missing_device(self):
    if not self.child():
      return
    cuda = ctypes.CDLL("libcudart.so.10.0")
    memory = ctypes.create_string_buffer(b"\x5a" * _SIZE, _SIZE)
    self.assertEqual(cuda.cudaGetDeviceProperties(memory, 2), _INVALID_DEVICE)
    self.assertEqual(memory.raw, b"\x5a" * _SIZE)
    for device in (-1, 2, 64, 1 << 30):
      self.assertEqual(cuda.cudaSetDevice(device), _INVALID_DEVICE)
    self.assertEqual(cuda.cudaGetLastError(), _INVALID_DEVICE)
    self.assertEqual(cuda.cudaGetLastError(), 0)

  def test_choosing_a_device_makes_no_context_and_using_it_does(self):
    if not self.child():
      return
    cuda, driver = ctypes.CDLL("libcudart.so.10.0"), ctypes.CDLL("libcuda.so.1")
    device = ctypes.c_int(-1)
    count = ctypes.c_int()
    self.assertEqual(cuda.cudaGetDeviceCount(ctypes.byref(count)), 0)
    self.assertEqual(count.value, 2)
    for chosen, contexts in ((1, 0), (0, 0)):
      self.assertEqual(cuda.cudaSetDevice(chosen), 0)
      self.assertEqual(cuda.cudaGetDevice(ctypes.byref(device)), 0)
      self.assertEqual(device.value, chosen)
      self.assertEqual(driver.cuStandInRetained(), contexts)
    self.assertEqual(cuda.cudaSetDevice(1), 0)
    for _ in range(2):
      self.assertEqual(cuda.cudaFree(None), 0)
    self.assertEqual(driver.cuStandInRetained(), 1)
    context = ctypes.c_void_p()
    driver.cuCtxGetCurrent(ctypes.byref(context))
    self.assertTrue(context.value)
    # Switches back and forth: device 0 has no context yet, device 1 keeps its own.
    cuda.cudaSetDevice(0)
    cuda.cudaGetDevice(ctypes.byref(device))
    self.assertEqual(device.value, 0)
    cuda.cudaSetDevice(1)
    again = ctypes.c_void_p()
    driver.cuCtxGetCurrent(ctypes.byref(again))
    self.assertEqual(again.value, context.value)
    # The driver's current context applies, as if TensorFlow had set it.
    driver.cuCtxSetCurrent(context)
    cuda.cudaGetDevice(ctypes.byref(device))
    self.assertEqual(device.value, 1)

  def test_free(self):
    if not self.child():
      return
    cuda, driver = ctypes.CDLL("libcudart.so.10.0"), ctypes.CDLL("libcuda.so.1")
    driver.cuStandInFreed.restype = ctypes.c_uint64
    self.assertEqual(cuda.cudaFree(ctypes.c_void_p(1 << 40)), 0)
    self.assertEqual(driver.cuStandInFreed(), 1 << 40)
    self.assertEqual(cuda.cudaFree(ctypes.c_void_p(13)), _ILLEGAL_ADDRESS)

  def test_pointers(self):
    if not self.child():
      return
    cuda = ctypes.CDLL("libcudart.so.10.0")
    found = PointerAttributes()
    get = lambda p: cuda.cudaPointerGetAttributes(ctypes.byref(found), ctypes.c_void_p(p))
    self.assertEqual(get(512), 0)
    self.assertEqual((found.memoryType, found.type, found.device, found.devicePointer,
                      found.hostPointer, found.isManaged), (2, 2, 1, 512, None, 0))
    self.assertEqual(get(4096), 0)
    self.assertEqual((found.memoryType, found.type, found.hostPointer, found.isManaged),
                     (2, 3, 4096, 1))
    # TensorFlow accepts only this error number for host memory.
    self.assertEqual(get(5000), _INVALID_VALUE)
    self.assertEqual(found.type, 3)

  def test_callbacks_get_cuda_10s_error(self):
    if not self.child():
      return
    cuda = ctypes.CDLL("libcudart.so.10.0")
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    seen = []
    function = kind(lambda stream, error, data: seen.append((stream, error, data)))
    self.assertEqual(cuda.cudaStreamAddCallback(
        ctypes.c_void_p(7), function, ctypes.c_void_p(8), 0), 0)
    self.assertEqual(seen, [(7, _ILLEGAL_ADDRESS, 8)])
    self.assertEqual(cuda.cudaStreamAddCallback(
        ctypes.c_void_p(7), function, ctypes.c_void_p(8), 1), _INVALID_VALUE)
    self.assertEqual(cuda.cudaStreamAddCallback(None, None, None, 0), _INVALID_VALUE)
    self.assertLen(seen, 1)

  def test_errors_have_a_text(self):
    if not self.child():
      return
    cuda = ctypes.CDLL("libcudart.so.10.0")
    cuda.cudaGetErrorString.restype = ctypes.c_char_p
    for error, text in ((0, b"no error"), (_INVALID_VALUE, b"invalid argument"),
                        (2, b"out of memory"), (12345, b"unknown error")):
      self.assertEqual(cuda.cudaGetErrorString(error), text)

  def test_without_a_driver_every_call_returns_an_error(self):
    if not self.child(with_driver=False):
      return
    try:
      ctypes.CDLL("libcuda.so.1")
      self.skipTest("this machine has a driver")
    except OSError:
      pass
    cuda = ctypes.CDLL("libcudart.so.10.0")
    memory = ctypes.create_string_buffer(_SIZE)
    self.assertEqual(cuda.cudaGetDeviceCount(memory), _NO_DRIVER)
    self.assertEqual(cuda.cudaGetDevice(memory), _NO_DRIVER)
    self.assertEqual(cuda.cudaSetDevice(0), _NO_DRIVER)
    self.assertEqual(cuda.cudaFree(None), _NO_DRIVER)
    self.assertEqual(cuda.cudaGetDeviceProperties(memory, 0), _NO_DRIVER)
    self.assertEqual(cuda.cudaPointerGetAttributes(memory, None), _NO_DRIVER)
    self.assertEqual(cuda.cudaStreamAddCallback(None, None, None, 0), _NO_DRIVER)


class CublasTest(StandInTestCase):

  # Maps CUDA 10.0's cudaDataType to the cublasComputeType_t of newer libraries.
  TYPES = {0: 68, 1: 70, 2: 64, 4: 68, 5: 70, 10: 72}

  def call(self, name, arguments, sum_at):
    """Calls with each type; checks that only this number changes on the way."""
    library = ctypes.CDLL("libcublas.so.10.0")
    got = (ctypes.c_int64 * 32)()
    for old, new in self.TYPES.items():
      passed = list(arguments)
      passed[sum_at] = ctypes.c_int(old)
      self.assertEqual(getattr(library, name)(*passed), 0)
      count = library.cublasStandInArguments(got)
      expected = [a.value for a in passed]
      expected[sum_at] = new
      self.assertEqual(list(got)[:count], expected)
    passed[sum_at] = ctypes.c_int(3)  # CUDA_R_8I, which is not a compute type
    self.assertEqual(getattr(library, name)(*passed), 15)

  def test_gemm(self):
    if not self.child():
      return
    i, p = ctypes.c_int, ctypes.c_void_p
    kinds = [p, i, i, i, i, i, p, p, i, i, p, i, i, p, p, i, i, i, i]
    self.call("cublasGemmEx", [k(n + 100) for n, k in enumerate(kinds)], 17)

  def test_gemm_batched(self):
    if not self.child():
      return
    i, p = ctypes.c_int, ctypes.c_void_p
    kinds = [p, i, i, i, i, i, p, p, i, i, p, i, i, p, p, i, i, i, i, i]
    self.call("cublasGemmBatchedEx", [k(n + 100) for n, k in enumerate(kinds)], 18)

  def test_gemm_strided_batched(self):
    if not self.child():
      return
    i, p, l = ctypes.c_int, ctypes.c_void_p, ctypes.c_longlong
    kinds = [p, i, i, i, i, i, p, p, i, i, l, p, i, i, l, p, p, i, i, l, i, i, i]
    arguments = [k(n + ((1 << 40) if k is l else 100)) for n, k in enumerate(kinds)]
    self.call("cublasGemmStridedBatchedEx", arguments, 21)

  def test_other_functions_are_found_behind(self):
    if not self.child():
      return
    library = ctypes.CDLL("libcublas.so.10.0")
    version = ctypes.c_int()
    self.assertEqual(library.cublasGetVersion_v2(ctypes.c_void_p(1),
                                                 ctypes.byref(version)), 0)
    self.assertEqual(version.value, 130000)


class NamesTest(absltest.TestCase):

  def test_what_each_library_exports(self):
    for name, expected in (
        ("libev_cudart10.so", {
            "cudaFree", "cudaGetDevice", "cudaGetDeviceCount", "cudaGetDeviceProperties",
            "cudaGetErrorString", "cudaGetLastError", "cudaPointerGetAttributes",
            "cudaSetDevice", "cudaStreamAddCallback"}),
        ("libev_cublas10.so", {"cublasGemmBatchedEx", "cublasGemmEx",
                               "cublasGemmStridedBatchedEx"}),
        ("libev_nothing.so", set())):
      text = subprocess.check_output(
          ["nm", "-D", "--defined-only", links.our_library(name)], universal_newlines=True)
      self.assertEqual({line.split()[-1] for line in text.splitlines()}, expected, name)


if __name__ == "__main__":
  absltest.main()

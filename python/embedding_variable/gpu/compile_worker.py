# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the driver compile modules of GPU code; run by
embedding_variable.gpu.compiling.

  python compile_worker.py LIBRARY GPU

Reads lines "offset bytes" from standard input. Loads that module of the file into a
context of the GPU, so that the driver compiles it and stores the result in
$CUDA_CACHE_PATH. Answers each line with the driver's result, 0 for success. It imports
nothing of this package, since that would import TensorFlow.
"""

import ctypes
import sys


def _check(result, what):
  if result != 0:
    sys.exit("%s: the NVIDIA driver returned error %d" % (what, result))


def main():
  path, ordinal = sys.argv[1], int(sys.argv[2])
  cuda = ctypes.CDLL("libcuda.so.1")
  device, context = ctypes.c_int(), ctypes.c_void_p()
  _check(cuda.cuInit(0), "cuInit")
  _check(cuda.cuDeviceGet(ctypes.byref(device), ordinal), "cuDeviceGet")
  _check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
         "cuDevicePrimaryCtxRetain")
  _check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
  with open(path, "rb") as library:
    for line in sys.stdin:
      offset, size = map(int, line.split())
      library.seek(offset)
      code = ctypes.create_string_buffer(library.read(size), size)
      module = ctypes.c_void_p()
      result = cuda.cuModuleLoadData(ctypes.byref(module), code)
      if result == 0:
        cuda.cuModuleUnload(module)
      sys.stdout.write("%d\n" % result)
      sys.stdout.flush()


if __name__ == "__main__":
  main()

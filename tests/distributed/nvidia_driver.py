# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks through the NVIDIA driver whether this machine has a GPU."""

import ctypes

_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE


def why_no_gpu():
  """Returns why this machine has no GPU, or None if it has one.

  Raises:
    RuntimeError: there is a driver, but it does not start. Tests must fail then, not be
      skipped, because the GPU is broken.
  """
  try:
    driver = ctypes.CDLL("libcuda.so.1")
  except OSError:
    return "this machine has no NVIDIA driver"
  count = ctypes.c_int()
  error = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
  if error not in (0, _NO_DEVICE):
    raise RuntimeError("the NVIDIA driver does not start: CUDA error %d" % error)
  return None if count.value else "the NVIDIA driver sees no GPU"

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Queries the NVIDIA driver: its version and the GPUs visible to this process."""

import collections
import ctypes
import re

from embedding_variable.gpu import errors

_SUCCESS, _NO_DEVICE = 0, 100
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*

# ordinal: the driver's number among the visible ones. capability: 10 * major + minor.
# memory: bytes.
Gpu = collections.namedtuple("Gpu", ["ordinal", "name", "capability", "memory"])

# version: "580.159.04", or None if unknown. cuda: newest CUDA version that it supports,
# such as (13, 0). gpus: list of Gpu.
Driver = collections.namedtuple("Driver", ["version", "cuda", "gpus"])


def _nvml_version():
  try:
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
  except OSError:
    return None
  if nvml.nvmlInit_v2() != _SUCCESS:
    return None
  text = ctypes.create_string_buffer(96)
  known = nvml.nvmlSystemGetDriverVersion(text, ctypes.c_uint(96)) == _SUCCESS
  nvml.nvmlShutdown()
  return text.value.decode() if known else None


def _kernel_version(path="/proc/driver/nvidia/version"):
  try:
    with open(path) as f:
      found = re.search(r"Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s", f.read())
  except OSError:
    return None
  return found.group(1) if found else None


def look(library="libcuda.so.1"):
  """Queries the driver. Uses no GPU memory.

  Args:
    library: the driver's library; replaced in tests.

  Returns:
    Driver, with at least one GPU.

  Raises:
    GpuError: there is no driver, it does not start, or this process sees no GPU.
  """
  try:
    cuda = ctypes.CDLL(library)
  except OSError:
    raise errors.GpuError(
        "this machine has no NVIDIA driver (libcuda.so.1 was not found). Install one for "
        "CUDA 12 or 13; in a container, give it the GPU.")
  result = cuda.cuInit(0)
  if result not in (_SUCCESS, _NO_DEVICE):
    raise errors.GpuError(
        "the NVIDIA driver does not start: cuInit returned %d. Does nvidia-smi work here?" %
        result)
  number, count = ctypes.c_int(), ctypes.c_int()
  cuda.cuDriverGetVersion(ctypes.byref(number))
  if result == _SUCCESS:
    cuda.cuDeviceGetCount(ctypes.byref(count))
  if not count.value:
    raise errors.GpuError("this process sees no GPU: look at CUDA_VISIBLE_DEVICES and "
                          "nvidia-smi")
  gpus = [_gpu(cuda, ordinal) for ordinal in range(count.value)]
  cuda_version = (number.value // 1000, number.value % 1000 // 10)
  return Driver(_nvml_version() or _kernel_version(), cuda_version, gpus)


def _gpu(cuda, ordinal):
  device = ctypes.c_int()
  name = ctypes.create_string_buffer(256)
  major, minor = ctypes.c_int(), ctypes.c_int()
  memory = ctypes.c_size_t()
  for result in (
      cuda.cuDeviceGet(ctypes.byref(device), ordinal),
      cuda.cuDeviceGetName(name, 256, device),
      cuda.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, device),
      cuda.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, device),
      cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device)):
    if result != _SUCCESS:
      raise errors.GpuError("the NVIDIA driver returned error %d for GPU %d" %
                            (result, ordinal))
  return Gpu(ordinal, name.value.decode("utf-8", "replace"),
             10 * major.value + minor.value, memory.value)

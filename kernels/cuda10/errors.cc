// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda10/errors.h"

namespace cuda10 {
namespace {

constexpr int kUnknown = 30;

struct Known {
  int driver;
  int runtime;
  const char* text;
};

constexpr Known kKnown[] = {
    {0, kSuccess, "no error"},
    {1, kInvalidValue, "invalid argument"},
    {2, 2, "out of memory"},
    {3, 3, "initialization error"},
    {4, 29, "driver shutting down"},
    {46, 46, "all CUDA-capable devices are busy or unavailable"},
    {100, 38, "no CUDA-capable device is detected"},
    {101, kInvalidDevice, "invalid device ordinal"},
    {200, 47, "device kernel image is invalid"},
    {201, 49, "incompatible driver context"},
    {209, 48, "no kernel image is available for execution on the device"},
    {214, 39, "uncorrectable ECC error encountered"},
    {304, 63, "OS call failed or operation not supported on this OS"},
    {400, 33, "invalid resource handle"},
    {600, 34, "device not ready"},
    {700, 77, "an illegal memory access was encountered"},
    {701, 7, "too many resources requested for launch"},
    {702, 6, "the launch timed out and was terminated"},
    {719, 4, "unspecified launch failure"},
    {801, 71, "operation not supported"},
    {803, kInsufficientDriver,
     "no NVIDIA driver, or it does not match its library libcuda.so.1"},
};

}  // namespace

int FromDriver(int result) {
  for (const Known& known : kKnown) {
    if (known.driver == result) return known.runtime;
  }
  return kUnknown;
}

const char* Text(int error) {
  for (const Known& known : kKnown) {
    if (known.runtime == error) return known.text;
  }
  return "unknown error";
}

}  // namespace cuda10

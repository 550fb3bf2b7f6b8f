// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu/process_device.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>

#include "kernels/engine/base/gpu/cuda_error.h"

namespace ev {
namespace gpu {
namespace {

// Number of this process among those of its host, from the launcher's
// environment variables; 0 without one.
int LocalRank() {
  for (const char* name :
       {"HOROVOD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) return std::max(0, std::atoi(value));
  }
  return 0;
}

}  // namespace

Status ProcessDevice(const std::string& who_needs, int* device) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver) {
    cudaGetLastError();
    int driver = 0;
    const bool known = cudaDriverGetVersion(&driver) == cudaSuccess;
    return FailedPrecondition(
        known && driver > 0
            ? who_needs +
                  " a newer NVIDIA driver: the installed one is for CUDA " +
                  std::to_string(driver / 1000) + "." +
                  std::to_string(driver % 1000 / 10)
            : who_needs + " an NVIDIA driver, and this machine has none");
  }
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) {
    cudaGetLastError();
    return FailedPrecondition(
        who_needs +
        " a GPU, and this process sees none (is CUDA_VISIBLE_DEVICES set?)");
  }
  EV_RETURN_IF_ERROR(
      CudaStatus(error, "cudaGetDeviceCount", __FILE__, __LINE__));
  *device = LocalRank() % count;
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

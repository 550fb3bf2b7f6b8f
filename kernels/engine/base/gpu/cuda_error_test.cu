// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Checks which errors mean that a GPU cannot be used at all, and which mean
// that it has failed. A plain program, because it uses nvcc's headers; needs no
// GPU.

#include <cuda_runtime_api.h>

#include <cstdio>

#include "kernels/engine/base/gpu/cuda_error.h"

namespace ev {
namespace gpu {
namespace {

int g_failures = 0;

void Expect(StatusCode code, cudaError_t error) {
  const Status status = CudaStatus(error, "call", __FILE__, __LINE__);
  if (status.code() == code) return;
  ++g_failures;
  std::printf("code %d: %s\n", static_cast<int>(status.code()),
              status.message().c_str());
}

int Main() {
  Expect(StatusCode::kOk, cudaSuccess);
  Expect(StatusCode::kResourceExhausted, cudaErrorMemoryAllocation);
  for (cudaError_t error :
       {cudaErrorNoDevice, cudaErrorInsufficientDriver,
        cudaErrorNoKernelImageForDevice, cudaErrorInvalidDeviceFunction,
        cudaErrorUnsupportedPtxVersion, cudaErrorJitCompilerNotFound}) {
    Expect(StatusCode::kFailedPrecondition, error);
  }
  for (cudaError_t error :
       {cudaErrorUnknown, cudaErrorECCUncorrectable,
        cudaErrorDevicesUnavailable, cudaErrorInitializationError,
        cudaErrorSystemNotReady, cudaErrorIllegalAddress,
        cudaErrorLaunchFailure}) {
    Expect(StatusCode::kInternal, error);
  }
  return g_failures != 0;
}

}  // namespace
}  // namespace gpu
}  // namespace ev

int main() { return ev::gpu::Main(); }

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu/cuda_error.h"

#include <cstdio>
#include <string>

namespace ev {
namespace gpu {
namespace {

std::string Message(cudaError_t error, const char* call, const char* file,
                    int line) {
  int device = -1;
  // A broken context may fail here as well; report the first error.
  if (cudaGetDevice(&device) != cudaSuccess) device = -1;
  return std::string(call) + " failed on CUDA device " +
         std::to_string(device) + ": " + cudaGetErrorString(error) + " (" +
         cudaGetErrorName(error) + ") at " + file + ":" + std::to_string(line);
}

}  // namespace

Status CudaStatus(cudaError_t error, const char* call, const char* file,
                  int line) {
  if (error == cudaSuccess) return Status::OK();
  std::string message = Message(error, call, file, line);
  switch (error) {
    case cudaErrorMemoryAllocation:
      return ResourceExhausted(std::move(message));
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    // The binary has no code for the device, or the driver cannot compile it.
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorJitCompilationDisabled:
      return FailedPrecondition(std::move(message));
    default:
      return Internal(std::move(message));
  }
}

void LogCudaError(cudaError_t error, const char* call, const char* file,
                  int line) {
  std::fprintf(stderr, "%s\n", Message(error, call, file, line).c_str());
}

}  // namespace gpu
}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The one way in which the engine looks at the result of a CUDA call: a Status
// that keeps the call's text, its place and the device it ran on.

#ifndef KERNELS_ENGINE_BASE_GPU_CUDA_ERROR_H_
#define KERNELS_ENGINE_BASE_GPU_CUDA_ERROR_H_

#include <cuda_runtime_api.h>

#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// OK for cudaSuccess; ResourceExhausted when memory ran out, FailedPrecondition
// when there is no usable device or driver, else Internal.
Status CudaStatus(cudaError_t error, const char* call, const char* file,
                  int line);

// Writes the message to stderr: for destructors, which have no caller to return
// an error to.
void LogCudaError(cudaError_t error, const char* call, const char* file,
                  int line);

}  // namespace gpu
}  // namespace ev

#define EV_CUDA_RETURN_IF_ERROR(call)                                          \
  do {                                                                         \
    const cudaError_t ev_cuda_error_ = (call);                                 \
    if (ev_cuda_error_ != cudaSuccess) {                                       \
      return ::ev::gpu::CudaStatus(ev_cuda_error_, #call, __FILE__, __LINE__); \
    }                                                                          \
  } while (0)

// After a kernel launch: catches a bad configuration; waits for nothing.
#define EV_CUDA_RETURN_IF_LAUNCH_FAILED(kernel)                         \
  do {                                                                  \
    const cudaError_t ev_cuda_error_ = cudaGetLastError();              \
    if (ev_cuda_error_ != cudaSuccess) {                                \
      return ::ev::gpu::CudaStatus(ev_cuda_error_, "launch of " kernel, \
                                   __FILE__, __LINE__);                 \
    }                                                                   \
  } while (0)

#define EV_CUDA_LOG_IF_ERROR(call)                                        \
  do {                                                                    \
    const cudaError_t ev_cuda_error_ = (call);                            \
    if (ev_cuda_error_ != cudaSuccess) {                                  \
      ::ev::gpu::LogCudaError(ev_cuda_error_, #call, __FILE__, __LINE__); \
    }                                                                     \
  } while (0)

#endif  // KERNELS_ENGINE_BASE_GPU_CUDA_ERROR_H_

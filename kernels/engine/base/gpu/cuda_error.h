// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Checks the result of CUDA calls: turns it into a Status with the text of the
// call, its source line and the device.

#ifndef KERNELS_ENGINE_BASE_GPU_CUDA_ERROR_H_
#define KERNELS_ENGINE_BASE_GPU_CUDA_ERROR_H_

#include <cuda_runtime_api.h>

#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// Returns OK for cudaSuccess, ResourceExhausted if memory ran out,
// FailedPrecondition if there is no usable device or driver, else Internal.
Status CudaStatus(cudaError_t error, const char* call, const char* file,
                  int line);

// Writes the message to stderr. For destructors, which cannot return an error.
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

// Use after a kernel launch: reports a bad configuration. Does not wait.
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

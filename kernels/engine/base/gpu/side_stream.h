// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_BASE_GPU_SIDE_STREAM_H_
#define KERNELS_ENGINE_BASE_GPU_SIDE_STREAM_H_

#include <cuda_runtime_api.h>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/urgent_stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// A stream beside the caller's, for a long chain of small kernels that little
// other work waits for. Its blocks have the highest priority.
class SideStream {
 public:
  ~SideStream() {
    if (fork_ != nullptr) EV_CUDA_LOG_IF_ERROR(cudaEventDestroy(fork_));
    if (join_ != nullptr) EV_CUDA_LOG_IF_ERROR(cudaEventDestroy(join_));
    if (stream_ != nullptr) EV_CUDA_LOG_IF_ERROR(cudaStreamDestroy(stream_));
  }
  Status Create() {
    EV_RETURN_IF_ERROR(CreateUrgentStream(/*most=*/true, &stream_));
    EV_CUDA_RETURN_IF_ERROR(
        cudaEventCreateWithFlags(&fork_, cudaEventDisableTiming));
    EV_CUDA_RETURN_IF_ERROR(
        cudaEventCreateWithFlags(&join_, cudaEventDisableTiming));
    return Status::OK();
  }
  // Makes later work on this stream wait for all work enqueued on 'main'.
  Status Fork(cudaStream_t main) {
    EV_CUDA_RETURN_IF_ERROR(cudaEventRecord(fork_, main));
    EV_CUDA_RETURN_IF_ERROR(cudaStreamWaitEvent(stream_, fork_, 0));
    return Status::OK();
  }
  Status Join(cudaStream_t main) {
    EV_CUDA_RETURN_IF_ERROR(cudaEventRecord(join_, stream_));
    EV_CUDA_RETURN_IF_ERROR(cudaStreamWaitEvent(main, join_, 0));
    return Status::OK();
  }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t fork_ = nullptr, join_ = nullptr;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_SIDE_STREAM_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Streams with priority over those of a model's layers: the GPU schedules their
// blocks first as soon as others end. The kernels of a lookup or an update are
// short, and the layers or the next step wait for them.

#ifndef KERNELS_ENGINE_BASE_GPU_URGENT_STREAM_H_
#define KERNELS_ENGINE_BASE_GPU_URGENT_STREAM_H_

#include <cuda_runtime_api.h>

#include <algorithm>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// Creates a stream on the current device. most: use the highest priority, for
// the start of a step's longest work; otherwise one level below it.
inline Status CreateUrgentStream(bool most, cudaStream_t* stream) {
  // Lower numbers are higher priorities.
  int least = 0, greatest = 0;
  EV_CUDA_RETURN_IF_ERROR(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  const int priority = most ? greatest : std::min(least, greatest + 1);
  EV_CUDA_RETURN_IF_ERROR(
      cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, priority));
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_URGENT_STREAM_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Streams whose kernels do not stand behind those of a model's layers: the GPU
// takes their blocks first as soon as others end. The kernels of a lookup or an
// update are short, and layers wait for them, or the next step does.

#ifndef KERNELS_ENGINE_BASE_GPU_URGENT_STREAM_H_
#define KERNELS_ENGINE_BASE_GPU_URGENT_STREAM_H_

#include <cuda_runtime_api.h>

#include <algorithm>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// On the current device. most: before other such streams, too, for what the
// longest work of a step begins with.
inline Status CreateUrgentStream(bool most, cudaStream_t* stream) {
  // A lower number comes before a higher one.
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

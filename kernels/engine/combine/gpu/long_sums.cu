// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/combine/gpu/long_sums.cuh"
#include "kernels/engine/combine/gpu/long_sums.h"

namespace ev {
namespace gpu {
namespace {

constexpr int64_t kMaxBlocks = 1 << 16;

template <typename Unit>
__global__ void __launch_bounds__(kSumThreads, 2)
    LongSumsKernel(PooledGradients gradients, int64_t num_keys, int64_t num_ids,
                   int64_t dim, float* sums) {
  __shared__ LongSumsShared shared;
  SumLongKeys<Unit>(gradients, num_keys, num_ids, dim, sums, &shared);
}

}  // namespace

size_t LongSumBytes(int64_t num_ids, int64_t dim) {
  return NumLongStretches(num_ids) * dim * sizeof(float);
}

Status LaunchLongSums(const PooledGradients& gradients, int64_t num_keys,
                      int64_t num_ids, int64_t dim, float* sums,
                      StreamView stream) {
  const unsigned blocks =
      static_cast<unsigned>(std::min(kMaxBlocks, LongSumBlocks(num_ids, dim)));
  if (blocks == 0) return Status::OK();
  const bool is_aligned =
      dim % 4 == 0 &&
      reinterpret_cast<uintptr_t>(gradients.grads) % sizeof(float4) == 0;
  if (is_aligned) {
    LongSumsKernel<float4><<<blocks, kSumThreads, 0, stream.get()>>>(
        gradients, num_keys, num_ids, dim, sums);
  } else {
    LongSumsKernel<float><<<blocks, kSumThreads, 0, stream.get()>>>(
        gradients, num_keys, num_ids, dim, sums);
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("LongSumsKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

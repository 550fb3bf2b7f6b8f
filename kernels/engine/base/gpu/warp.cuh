// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_BASE_GPU_WARP_CUH_
#define KERNELS_ENGINE_BASE_GPU_WARP_CUH_

namespace ev {
namespace gpu {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// Returns the inclusive prefix sum over the warp.
template <typename T>
__device__ __forceinline__ T WarpSum(T v, int lane) {
#pragma unroll
  for (int d = 1; d < kWarp; d *= 2) {
    const T other = __shfl_up_sync(kAllLanes, v, d);
    if (lane >= d) v += other;
  }
  return v;
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_WARP_CUH_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Counting over tiles of a batch: each block counts its tile, and the last
// block to come sums the tiles up.

#ifndef KERNELS_ENGINE_ROWS_GPU_TILES_CUH_
#define KERNELS_ENGINE_ROWS_GPU_TILES_CUH_

#include <cstdint>

#include "kernels/engine/rows/gpu/distinct.h"

namespace ev {
namespace gpu {

constexpr int kBlock = 256;
constexpr int kLanes = 32;
constexpr int kWarps = kBlock / kLanes;
constexpr int kRounds = static_cast<int>(kDistinctTile) / kBlock;
constexpr unsigned kAll = 0xFFFFFFFFu;
static_assert(kRounds * kWarps == kLanes, "one warp scans a tile's counts");

// Inclusive sum over the warp.
__device__ __forceinline__ uint32_t WarpSum(uint32_t v, int lane) {
#pragma unroll
  for (int d = 1; d < kLanes; d *= 2) {
    const uint32_t other = __shfl_up_sync(kAll, v, d);
    if (lane >= d) v += other;
  }
  return v;
}

// Whether this block is the last to come here: then it sees what all others
// have written. *done was set to all ones. Called by all threads.
__device__ __forceinline__ bool IsLastBlock(uint32_t* done) {
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(done, 1u) + 2u == gridDim.x;
  __syncthreads();
  __threadfence();
  return is_last;
}

// tiles[t] becomes the sum of those before it. By one block.
__device__ __forceinline__ void ScanTiles(uint32_t* tiles, uint32_t num_tiles,
                                          uint32_t* total) {
  __shared__ uint32_t sums[kWarps];
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  uint32_t before = 0;
  for (uint32_t begin = 0; begin < num_tiles; begin += kBlock) {
    const uint32_t t = begin + threadIdx.x;
    const uint32_t own = t < num_tiles ? __ldcg(tiles + t) : 0;
    const uint32_t up_to_here = WarpSum(own, lane);
    if (lane == kLanes - 1) sums[warp] = up_to_here;
    __syncthreads();
    uint32_t warps_before = 0, all = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) warps_before += sums[w];
      all += sums[w];
    }
    if (t < num_tiles) tiles[t] = before + warps_before + up_to_here - own;
    before += all;
    __syncthreads();
  }
  if (threadIdx.x == 0) *total = before;
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_TILES_CUH_

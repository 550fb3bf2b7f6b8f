// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Counting over tiles of batches, of several tables in one launch: each block
// counts its tile, and the last block of a table to come sums the table's tiles
// up.

#ifndef KERNELS_ENGINE_ROWS_GPU_TILES_CUH_
#define KERNELS_ENGINE_ROWS_GPU_TILES_CUH_

#include <cstddef>
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

// Tables of one launch: as many as its parameters have room for, which are 4
// KiB so that a launch stays cheap.
constexpr int kMostTables = 26;
constexpr size_t kMostParameterBytes = 4096;

// The blocks of a launch: those of its first table, of its second, and so on. A
// table may have none.
struct TableBlocks {
  int num_tables = 0;
  uint32_t first[kMostTables + 1] = {};  // the last: of all tables

  // count(t) of table t. REQUIRES num_tables <= kMostTables.
  template <typename Count>
  static TableBlocks Of(size_t num_tables, const Count& count) {
    TableBlocks blocks;
    blocks.num_tables = static_cast<int>(num_tables);
    for (size_t t = 0; t < num_tables; ++t) {
      blocks.first[t + 1] = blocks.first[t] + static_cast<uint32_t>(count(t));
    }
    return blocks;
  }
  unsigned all() const { return first[num_tables]; }
};

// Which table's block this thread is in, which of them, of how many.
struct TableBlock {
  int table;
  uint32_t index, count;
};
__device__ __forceinline__ TableBlock FindBlock(const TableBlocks& blocks) {
  // The last table whose first block is not behind this one; it has blocks.
  int low = 0, high = blocks.num_tables;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (blocks.first[middle] <= blockIdx.x) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const uint32_t first = blocks.first[low];
  return {low, blockIdx.x - first, blocks.first[low + 1] - first};
}

// Whether this block is the last of num_blocks to come here: then it sees what
// all others have written. *done was set to all ones. Called by all threads.
__device__ __forceinline__ bool IsLastBlock(uint32_t* done,
                                            uint32_t num_blocks) {
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(done, 1u) + 2u == num_blocks;
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

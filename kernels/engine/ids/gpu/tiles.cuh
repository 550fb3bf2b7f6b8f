// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Device helpers that count over the tiles of batches, for several tables in
// one launch. Each block counts one tile; the last block of a table to finish
// computes the prefix sums over the table's tiles.

#ifndef KERNELS_ENGINE_IDS_GPU_TILES_CUH_
#define KERNELS_ENGINE_IDS_GPU_TILES_CUH_

#include <cstddef>
#include <cstdint>

#include "kernels/engine/base/gpu/warp.cuh"
#include "kernels/engine/ids/gpu/distinct.h"

namespace ev {
namespace gpu {

constexpr int kBlock = 256;
constexpr int kWarps = kBlock / kWarp;
constexpr int kRounds = static_cast<int>(kDistinctTile) / kBlock;
static_assert(kRounds * kWarps == kWarp, "one warp scans a tile's counts");

// Maximum number of tables per launch. Their descriptions are kernel
// parameters, which are limited to 4 KiB so that a launch stays cheap.
constexpr int kMostTables = 26;
constexpr size_t kMostParameterBytes = 4096;

// Maps the blocks of a launch to tables: first the blocks of table 0, then of
// table 1, and so on. A table may have no block.
struct TableBlocks {
  int num_tables = 0;
  uint32_t first[kMostTables + 1] = {};  // the last is the total

  // count(t) returns the number of table t's blocks. REQUIRES num_tables <=
  // kMostTables.
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

// A block's table, its index among the table's blocks, and their number.
struct TableBlock {
  int table;
  uint32_t index, count;
};
__device__ __forceinline__ TableBlock FindBlock(const TableBlocks& blocks) {
  // Finds the last table whose first block is at or before this one. That table
  // has at least one block.
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

// Returns true in the last of num_blocks blocks to call this; that block sees
// everything the others have written. *done must start as all ones. Call it
// from all threads of a block.
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

// Replaces tiles[t] by the sum of all tiles before t, and stores the sum of all
// in *total. Called by all threads of one block.
__device__ __forceinline__ void ScanTiles(uint32_t* tiles, uint32_t num_tiles,
                                          uint32_t* total) {
  __shared__ uint32_t sums[kWarps];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  uint32_t before = 0;
  for (uint32_t begin = 0; begin < num_tiles; begin += kBlock) {
    const uint32_t t = begin + threadIdx.x;
    const uint32_t own = t < num_tiles ? __ldcg(tiles + t) : 0;
    const uint32_t inclusive = WarpSum(own, lane);
    if (lane == kWarp - 1) sums[warp] = inclusive;
    __syncthreads();
    uint32_t warps_before = 0, all = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) warps_before += sums[w];
      all += sums[w];
    }
    if (t < num_tiles) tiles[t] = before + warps_before + inclusive - own;
    before += all;
    __syncthreads();
  }
  if (threadIdx.x == 0) *total = before;
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_GPU_TILES_CUH_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Two kernels:
//   count   Each tile counts its keys per owner. The table's last block then
//           computes prefix sums, owner by owner: the first place of each
//           tile's keys of each owner.
//   place   A key's place is the first place of its tile and owner, plus the
//           number of keys of its owner before it in the tile.
//
// The keys of an owner keep their order; it does not depend on thread
// scheduling.

#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/ids/device_distinct.h"
#include "kernels/engine/ids/gpu/sort_by_owner.h"
#include "kernels/engine/ids/gpu/tiles.cuh"

namespace ev {
namespace gpu {
namespace {

// Parameters of a kernel.
struct OwnedTables {
  TableBlocks blocks;
  OwnedKeys of[kMostTables];
};
static_assert(sizeof(OwnedTables) <= kMostParameterBytes, "more tables");

__device__ __forceinline__ int OwnerOf(const OwnedKeys& keys, int64_t key) {
  int64_t residue = key % keys.num_residues;
  if (residue < 0) residue += keys.num_residues;
  return __ldg(keys.owners + residue);
}

__global__ void __launch_bounds__(kBlock)
    CountOwnersKernel(const __grid_constant__ OwnedTables tables) {
  __shared__ uint32_t counts[kMaxKeyOwners];
  const TableBlock tile = FindBlock(tables.blocks);
  const OwnedKeys& keys = tables.of[tile.table];
  const uint32_t num_keys = *keys.num_keys;
  for (int o = threadIdx.x; o < keys.num_owners; o += kBlock) counts[o] = 0;
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kRounds; ++j) {
    const uint32_t u = tile.index * static_cast<uint32_t>(kDistinctTile) +
                       j * kBlock + threadIdx.x;
    if (u < num_keys) atomicAdd(counts + OwnerOf(keys, keys.keys[u]), 1u);
  }
  __syncthreads();
  for (int o = threadIdx.x; o < keys.num_owners; o += kBlock) {
    keys.tiles[static_cast<size_t>(o) * tile.count + tile.index] = counts[o];
  }
  if (!IsLastBlock(keys.done, tile.count)) return;
  ScanTiles(keys.tiles, keys.num_owners * tile.count, keys.total);
  __syncthreads();
  for (int o = threadIdx.x; o < keys.num_owners; o += kBlock) {
    keys.starts[o] = static_cast<int32_t>(
        __ldcg(keys.tiles + static_cast<size_t>(o) * tile.count));
  }
  if (threadIdx.x == 0) {
    keys.starts[keys.num_owners] = static_cast<int32_t>(num_keys);
  }
}

__global__ void __launch_bounds__(kBlock)
    PlaceKernel(const __grid_constant__ OwnedTables tables) {
  // For each round and warp of the tile and each owner: first the number of its
  // keys, then the place of its first key.
  __shared__ uint32_t before[kWarp * kMaxKeyOwners];
  const TableBlock tile = FindBlock(tables.blocks);
  const OwnedKeys& keys = tables.of[tile.table];
  const uint32_t num_keys = *keys.num_keys;
  const uint32_t begin =
      tile.index * static_cast<uint32_t>(kDistinctTile) + threadIdx.x;
  if (begin - threadIdx.x >= num_keys) return;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int num_owners = keys.num_owners;
  for (int i = threadIdx.x; i < kWarp * num_owners; i += kBlock) before[i] = 0;
  __syncthreads();
  int64_t key[kRounds];
  int owner[kRounds];
  uint32_t rank[kRounds];  // among the owner's keys in the warp
#pragma unroll
  for (int j = 0; j < kRounds; ++j) {
    const uint32_t u = begin + j * kBlock;
    key[j] = u < num_keys ? keys.keys[u] : 0;
    owner[j] = u < num_keys ? OwnerOf(keys, key[j]) : -1;
    const unsigned same = __match_any_sync(kAllLanes, owner[j]);
    rank[j] = __popc(same & ((1u << lane) - 1));
    if (owner[j] >= 0 && rank[j] == 0) {
      before[(j * kWarps + warp) * num_owners + owner[j]] = __popc(same);
    }
  }
  __syncthreads();
  for (int o = threadIdx.x; o < num_owners; o += kBlock) {
    uint32_t sum = keys.tiles[static_cast<size_t>(o) * tile.count + tile.index];
    for (int k = 0; k < kWarp; ++k) {
      const uint32_t own = before[k * num_owners + o];
      before[k * num_owners + o] = sum;
      sum += own;
    }
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kRounds; ++j) {
    if (owner[j] < 0) continue;
    const uint32_t place =
        before[(j * kWarps + warp) * num_owners + owner[j]] + rank[j];
    keys.places[begin + j * kBlock] = static_cast<int32_t>(place);
    keys.sorted[place] = key[j];
  }
}

}  // namespace

Status LaunchSortByOwner(Span<const OwnedKeys> tables, StreamView stream) {
  for (size_t begin = 0; begin < tables.size(); begin += kMostTables) {
    const size_t count = std::min<size_t>(kMostTables, tables.size() - begin);
    const Span<const OwnedKeys> some = tables.subspan(begin, count);
    OwnedTables launch;
    std::copy(some.begin(), some.end(), launch.of);
    launch.blocks = TableBlocks::Of(
        count, [&](size_t t) { return NumDistinctTiles(some[t].most_keys); });
    const unsigned tiles = launch.blocks.all();
    CountOwnersKernel<<<tiles, kBlock, 0, stream.get()>>>(launch);
    EV_CUDA_RETURN_IF_LAUNCH_FAILED("CountOwnersKernel");
    PlaceKernel<<<tiles, kBlock, 0, stream.get()>>>(launch);
    EV_CUDA_RETURN_IF_LAUNCH_FAILED("PlaceKernel");
  }
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

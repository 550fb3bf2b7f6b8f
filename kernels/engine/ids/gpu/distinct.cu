// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Deduplicates by hashing, with a secret (base/keyed_hash.h), in a scratch
// table of 8-byte entries: 32 bits of the key's hash and the position of the
// key's head, its first occurrence. Heads do not depend on the order of
// threads, so a prefix sum over the batch numbers the keys in order of first
// occurrence, as the CPU does.
//
//   insert  each id finds its key's entry and lowers its head
//   heads   each id reads its key's head; a tile counts its heads, and the
//           table's last block sums the tiles: the number of keys, and where
//           each tile's numbers begin
//   number  each head gets its number, and writes its key there
//   assign  each id reads its key's number, and adds to its count
//   send    writes the keys to host memory. Only the GPU has their number, so a
//           kernel writes them.
//
// Samples in GPU memory are checked first; the result is sent with the counts.
//
// Tables of one call share each launch: a block finds its table, and counts
// together with the blocks of that table only.
//
// Equal keys in a warp are handled by one lane. A hot key costs one probe and
// one addition per warp that has it, and one addition to global memory per
// block.

#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/keyed_hash.h"
#include "kernels/engine/ids/gpu/distinct.h"
#include "kernels/engine/ids/gpu/samples_on_device.cuh"
#include "kernels/engine/ids/gpu/tiles.cuh"

namespace ev {
namespace gpu {
namespace {

// A block counts keys with numbers below kEarly in shared memory, and then adds
// its counts to those in global memory. Hot keys occur early and so have low
// numbers, and concurrent additions to one address are serialized.
constexpr uint32_t kEarly = 1024;
constexpr unsigned kMaxAssignBlocks = 1024;    // per table
constexpr unsigned long long kNobody = ~0ULL;  // a free entry
// Flag in 'heads': the rest is the key's number, not the position of its head.
// Positions are below 2^30.
constexpr uint32_t kNumbered = 0x80000000u;

// Parameters of a kernel.
struct Batches {
  KeyedHash hash;
  TableBlocks blocks;
  DistinctBatch of[kMostTables];
};
static_assert(sizeof(Batches) <= kMostParameterBytes, "more tables");

// Clears in done[1], which starts as all ones, the SampleBits that it finds.
__global__ void __launch_bounds__(kBlock)
    SamplesKernel(const __grid_constant__ Batches batches) {
  const TableBlock block = FindBlock(batches.blocks);
  const DistinctBatch& batch = batches.of[block.table];
  const int64_t i = static_cast<int64_t>(block.index) * kBlock + threadIdx.x;
  const uint32_t bits = __reduce_or_sync(
      kAllLanes, FindSample(batch.splits, batch.indices, batch.num_ids,
                            batch.num_samples, i, batch.offsets));
  if (bits != 0 && threadIdx.x % kWarp == 0) atomicAnd(batch.done + 1, ~bits);
}

// Loads two entries from L2, where the writes of other threads are visible.
__device__ __forceinline__ void LoadTwo(const unsigned long long* from,
                                        unsigned long long* to) {
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(to[0]), "=l"(to[1])
               : "l"(from)
               : "memory");
}

__device__ __forceinline__ int64_t KeyAt(const DistinctBatch& batch,
                                         uint32_t i) {
  return batch.is_narrow ? __ldg(static_cast<const int32_t*>(batch.ids) + i)
                         : __ldg(static_cast<const int64_t*>(batch.ids) + i);
}

// Returns the entry of id i's key, and creates it if needed. Afterwards the
// entry's head is at most i.
__device__ __forceinline__ uint32_t FindEntry(const DistinctBatch& batch,
                                              uint64_t hash, int64_t key,
                                              uint32_t i) {
  const uint32_t buckets = (batch.num_ids + 1) / 2;  // NumDistinctEntries / 4
  // The lower half of the hash, which does not determine the bucket. It avoids
  // most comparisons of keys.
  const unsigned long long tag = hash << 32;
  uint32_t bucket = static_cast<uint32_t>(((hash >> 32) * buckets) >> 32);
  for (;;) {
    unsigned long long* const four =
        batch.entries + 4 * static_cast<size_t>(bucket);
    unsigned long long seen[4];
    LoadTwo(four, seen);
    LoadTwo(four + 2, seen + 2);
    int free = -1, at = -1;
    unsigned long long was = 0;
#pragma unroll
    for (int k = 3; k >= 0; --k) {
      if (seen[k] == kNobody) {
        free = k;
      } else if (((seen[k] ^ tag) >> 32) == 0 &&
                 KeyAt(batch, static_cast<uint32_t>(seen[k])) == key) {
        at = k;
        was = seen[k];
      }
    }
    if (at < 0) {
      if (free < 0) {
        if (++bucket == buckets) bucket = 0;
        continue;
      }
      // Entries are taken in order, so another thread with an equal key tries
      // this entry too.
      was = atomicCAS(four + free, kNobody, tag | i);
      if (was != kNobody && (((was ^ tag) >> 32) != 0 ||
                             KeyAt(batch, static_cast<uint32_t>(was)) != key)) {
        continue;
      }
      at = free;
      if (was == kNobody) was = tag | i;
    }
    if (i < static_cast<uint32_t>(was)) atomicMin(four + at, tag | i);
    return 4 * bucket + at;
  }
}

__global__ void __launch_bounds__(kBlock)
    InsertKernel(const __grid_constant__ Batches batches) {
  const TableBlock block = FindBlock(batches.blocks);
  const DistinctBatch& batch = batches.of[block.table];
  const uint32_t i = block.index * kBlock + threadIdx.x;
  const int lane = threadIdx.x % kWarp;
  const bool mine = i < batch.num_ids;
  const int64_t key = mine ? KeyAt(batch, i) : 0;
  const unsigned active = __ballot_sync(kAllLanes, mine);
  // The leader of lanes with equal keys is the one with the lowest i.
  int leader = lane;
  if (mine) leader = __ffs(__match_any_sync(active, key)) - 1;
  uint32_t entry = 0;
  if (mine && leader == lane)
    entry = FindEntry(batch, batches.hash(key), key, i);
  __syncwarp();
  entry = __shfl_sync(kAllLanes, entry, leader);
  if (mine) batch.heads[i] = entry;
}

__global__ void __launch_bounds__(kBlock)
    HeadsKernel(const __grid_constant__ Batches batches) {
  const TableBlock tile = FindBlock(batches.blocks);
  const DistinctBatch& batch = batches.of[tile.table];
  int count = 0;
  for (int j = 0; j < kRounds; ++j) {
    const uint32_t i = tile.index * static_cast<uint32_t>(kDistinctTile) +
                       j * kBlock + threadIdx.x;
    bool is_head = false;
    if (i < batch.num_ids) {
      const uint32_t head =
          static_cast<uint32_t>(__ldg(batch.entries + batch.heads[i]));
      batch.heads[i] = head;
      is_head = head == i;
    }
    count += __syncthreads_count(is_head);
  }
  if (threadIdx.x == 0) batch.tiles[tile.index] = count;
  if (IsLastBlock(batch.done, tile.count)) {
    ScanTiles(batch.tiles, tile.count, batch.counted);
  }
}

// Sets before[j * kWarps + w] to the number of the tile's marked elements that
// come before those of warp w in round j. masks[j]: the elements of this
// thread's warp that are marked in round j. Called by all threads.
__device__ __forceinline__ void CountBefore(const unsigned* masks,
                                            uint32_t* before) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
#pragma unroll
  for (int j = 0; j < kRounds; ++j) {
    if (lane == 0) before[j * kWarps + warp] = __popc(masks[j]);
  }
  __syncthreads();
  if (warp == 0) {
    const uint32_t own = before[lane];
    before[lane] = WarpSum(own, lane) - own;
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kBlock)
    NumberKernel(const __grid_constant__ Batches batches) {
  __shared__ uint32_t before[kWarp];
  const TableBlock tile = FindBlock(batches.blocks);
  const DistinctBatch& batch = batches.of[tile.table];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const uint32_t begin =
      tile.index * static_cast<uint32_t>(kDistinctTile) + threadIdx.x;
  unsigned masks[kRounds];
#pragma unroll
  for (int j = 0; j < kRounds; ++j) {
    const uint32_t i = begin + j * kBlock;
    masks[j] =
        __ballot_sync(kAllLanes, i < batch.num_ids && batch.heads[i] == i);
  }
  CountBefore(masks, before);
  const uint32_t first = batch.tiles[tile.index];
#pragma unroll
  for (int j = 0; j < kRounds; ++j) {
    if (((masks[j] >> lane) & 1) == 0) continue;
    const uint32_t i = begin + j * kBlock;
    const uint32_t u = first + before[j * kWarps + warp] +
                       __popc(masks[j] & ((1u << lane) - 1));
    batch.keys[u] = KeyAt(batch, i);
    batch.counts[u] = 0;
    batch.heads[i] = kNumbered | u;
  }
}

__global__ void __launch_bounds__(kBlock)
    AssignKernel(const __grid_constant__ Batches batches) {
  __shared__ int32_t early[kEarly];
  const TableBlock block = FindBlock(batches.blocks);
  const DistinctBatch& batch = batches.of[block.table];
  const uint32_t num_ids = batch.num_ids;
  for (uint32_t k = threadIdx.x; k < kEarly; k += kBlock) early[k] = 0;
  __syncthreads();
  for (uint32_t begin = block.index * kBlock; begin < num_ids;
       begin += block.count * kBlock) {
    const uint32_t i = begin + threadIdx.x;
    const bool mine = i < num_ids;
    const unsigned active = __ballot_sync(kAllLanes, mine);
    if (!mine) break;
    const uint32_t head = batch.heads[i];
    const uint32_t numbered =
        (head & kNumbered) != 0 ? head : batch.heads[head];
    const uint32_t u = numbered & ~kNumbered;
    batch.inverse[i] = static_cast<int32_t>(u);
    const unsigned same = __match_any_sync(active, u);
    if (static_cast<int>(threadIdx.x % kWarp) == __ffs(same) - 1) {
      if (u < kEarly) {
        atomicAdd(early + u, __popc(same));
      } else {
        atomicAdd(batch.counts + u, __popc(same));
      }
    }
  }
  __syncthreads();
  for (uint32_t k = threadIdx.x; k < kEarly; k += kBlock) {
    if (early[k] != 0) atomicAdd(batch.counts + k, early[k]);
  }
}

// Runs with one block per tile of keys, or one block for a table whose keys are
// not needed.
__global__ void __launch_bounds__(kBlock)
    SendKernel(const __grid_constant__ Batches batches) {
  const TableBlock block = FindBlock(batches.blocks);
  const DistinctBatch& batch = batches.of[block.table];
  const uint32_t num_keys = batch.counted[0];
  if (block.index == 0 && threadIdx.x == 0) {
    batch.sent.counts->num_unique = num_keys;
    batch.sent.counts->samples = ~batch.done[1];
  }
  if (batch.sent.keys == nullptr) return;
  const uint32_t begin =
      block.index * static_cast<uint32_t>(kDistinctTile) + threadIdx.x;
  for (int j = 0; j < kRounds; ++j) {
    const uint32_t u = begin + j * kBlock;
    if (u < num_keys) batch.sent.keys[u] = batch.keys[u];
  }
}

unsigned NumBlocks(int64_t threads) {
  return static_cast<unsigned>((threads + kBlock - 1) / kBlock);
}

// Launches the kernels for at most kMostTables tables.
Status Launch(Span<const DistinctBatch> some, cudaStream_t stream) {
  Batches batches;
  batches.hash = KeyedHash::OfProcess();
  std::copy(some.begin(), some.end(), batches.of);
  const auto lay_out = [&](const auto& count) {
    batches.blocks =
        TableBlocks::Of(some.size(), [&](size_t t) { return count(some[t]); });
    return batches.blocks.all();
  };
  const unsigned samples = lay_out([](const DistinctBatch& batch) {
    if (batch.splits == nullptr && batch.indices == nullptr) return 0u;
    return NumBlocks(std::max<int64_t>(batch.num_ids, batch.num_samples) + 1);
  });
  if (samples != 0) {
    SamplesKernel<<<samples, kBlock, 0, stream>>>(batches);
    EV_CUDA_RETURN_IF_LAUNCH_FAILED("SamplesKernel");
  }
  const unsigned ids = lay_out(
      [](const DistinctBatch& batch) { return NumBlocks(batch.num_ids); });
  InsertKernel<<<ids, kBlock, 0, stream>>>(batches);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("InsertKernel");
  const unsigned tiles = lay_out([](const DistinctBatch& batch) {
    return static_cast<unsigned>(NumDistinctTiles(batch.num_ids));
  });
  HeadsKernel<<<tiles, kBlock, 0, stream>>>(batches);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("HeadsKernel");
  NumberKernel<<<tiles, kBlock, 0, stream>>>(batches);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("NumberKernel");
  const unsigned assigning = lay_out([](const DistinctBatch& batch) {
    return std::min(NumBlocks(batch.num_ids), kMaxAssignBlocks);
  });
  AssignKernel<<<assigning, kBlock, 0, stream>>>(batches);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("AssignKernel");
  const unsigned sending = lay_out([](const DistinctBatch& batch) {
    if (batch.sent.keys == nullptr) return 1u;
    return static_cast<unsigned>(NumDistinctTiles(batch.num_ids));
  });
  SendKernel<<<sending, kBlock, 0, stream>>>(batches);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("SendKernel");
  return Status::OK();
}

}  // namespace

Status LaunchDistinct(Span<const DistinctBatch> batches, StreamView stream) {
  for (size_t begin = 0; begin < batches.size(); begin += kMostTables) {
    const size_t count = std::min<size_t>(kMostTables, batches.size() - begin);
    EV_RETURN_IF_ERROR(Launch(batches.subspan(begin, count), stream.get()));
  }
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

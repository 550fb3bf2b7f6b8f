// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Dedup by hashing in a scratch table of 8-byte entries, 32 bits of the key's
// hash and the number of one of its occurrences, its head, as dedup.cu does it.
// Here the head is the key's first occurrence, whatever the order in which
// threads come: so a sum over the batch numbers the keys in order of first
// occurrence, and the result is the processor's.
//
//   insert  each id finds its key's entry and lowers its head
//   heads   each id learns its key's head; a tile counts its heads
//   scan    where each tile's numbers begin, and how many keys there are
//   number  each head gets its number and writes its key there
//   assign  each id learns its key's number, and adds to its count
//   send    keys and counts go to memory of the host: how many there are is
//           known here only, and a copy would have to be told
//
// Equal keys in a warp speak with one voice: a hot key costs one probe, and one
// addition, per warp that has it.

#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/embedding/gpu/distinct.h"

namespace ev {
namespace gpu {
namespace {

constexpr int kBlock = 256;
constexpr int kLanes = 32;
constexpr int kWarps = kBlock / kLanes;
constexpr int kRounds = static_cast<int>(kDistinctTile) / kBlock;
constexpr int kScanBlock = 1024;
constexpr int kMaxSendBlocks = 64;
constexpr unsigned kAll = 0xFFFFFFFFu;
constexpr unsigned long long kNobody = ~0ULL;
// In heads, of a head whose number is there. Ids are fewer than 2^30.
constexpr uint32_t kNumbered = 0x80000000u;
static_assert(kRounds * kWarps == kLanes, "one warp scans a tile's counts");

// MurmurHash3's finaliser.
__device__ __forceinline__ uint64_t Mix(int64_t key) {
  uint64_t h = static_cast<uint64_t>(key);
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdULL;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53ULL;
  h ^= h >> 33;
  return h;
}

// Two entries as other threads left them, from L2.
__device__ __forceinline__ void LoadTwo(const unsigned long long* from,
                                        unsigned long long* to) {
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(to[0]), "=l"(to[1])
               : "l"(from)
               : "memory");
}

template <typename Id>
__device__ __forceinline__ int64_t KeyAt(const DistinctBatch& batch,
                                         uint32_t i) {
  return __ldg(static_cast<const Id*>(batch.ids) + i);
}

// The entry of id i's key, which is made if there is none; its head is at most
// i afterwards.
template <typename Id>
__device__ uint32_t FindEntry(const DistinctBatch& batch, uint32_t buckets,
                              int64_t key, uint32_t i) {
  const uint64_t hash = Mix(key);
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
                 KeyAt<Id>(batch, static_cast<uint32_t>(seen[k])) == key) {
        at = k;
        was = seen[k];
      }
    }
    if (at < 0) {
      if (free < 0) {
        if (++bucket == buckets) bucket = 0;
        continue;
      }
      // Entries are taken in order, so an equal key meets this one here.
      was = atomicCAS(four + free, kNobody, tag | i);
      if (was != kNobody &&
          (((was ^ tag) >> 32) != 0 ||
           KeyAt<Id>(batch, static_cast<uint32_t>(was)) != key)) {
        continue;
      }
      at = free;
      if (was == kNobody) was = tag | i;
    }
    if (i < static_cast<uint32_t>(was)) atomicMin(four + at, tag | i);
    return 4 * bucket + at;
  }
}

template <typename Id>
__global__ void __launch_bounds__(kBlock)
    InsertKernel(DistinctBatch batch, uint32_t num_ids, uint32_t buckets) {
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  const int lane = threadIdx.x % kLanes;
  const bool mine = i < num_ids;
  const int64_t key = mine ? KeyAt<Id>(batch, i) : 0;
  const unsigned active = __ballot_sync(kAll, mine);
  // The leader has the lowest i.
  int leader = lane;
  if (mine) leader = __ffs(__match_any_sync(active, key)) - 1;
  uint32_t entry = 0;
  if (mine && leader == lane) entry = FindEntry<Id>(batch, buckets, key, i);
  __syncwarp();
  entry = __shfl_sync(kAll, entry, leader);
  if (mine) batch.heads[i] = entry;
}

__global__ void __launch_bounds__(kBlock)
    HeadsKernel(DistinctBatch batch, uint32_t num_ids) {
  int count = 0;
  for (int j = 0; j < kRounds; ++j) {
    const uint32_t i = blockIdx.x * static_cast<uint32_t>(kDistinctTile) +
                       j * kBlock + threadIdx.x;
    bool is_head = false;
    if (i < num_ids) {
      const uint32_t head =
          static_cast<uint32_t>(__ldg(batch.entries + batch.heads[i]));
      batch.heads[i] = head;
      is_head = head == i;
    }
    count += __syncthreads_count(is_head);
  }
  if (threadIdx.x == 0) batch.tiles[blockIdx.x] = count;
}

// Inclusive sum over the warp.
__device__ __forceinline__ uint32_t WarpSum(uint32_t v, int lane) {
#pragma unroll
  for (int d = 1; d < kLanes; d *= 2) {
    const uint32_t other = __shfl_up_sync(kAll, v, d);
    if (lane >= d) v += other;
  }
  return v;
}

// One block.
__global__ void __launch_bounds__(kScanBlock)
    ScanTilesKernel(uint32_t* tiles, uint32_t num_tiles, uint32_t* total) {
  __shared__ uint32_t sums[kLanes];
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  uint32_t before = 0;
  for (uint32_t begin = 0; begin < num_tiles; begin += kScanBlock) {
    const uint32_t t = begin + threadIdx.x;
    const uint32_t own = t < num_tiles ? tiles[t] : 0;
    const uint32_t up_to_here = WarpSum(own, lane);
    if (lane == kLanes - 1) sums[warp] = up_to_here;
    __syncthreads();
    if (warp == 0) sums[lane] = WarpSum(sums[lane], lane);
    __syncthreads();
    const uint32_t warps_before = warp == 0 ? 0 : sums[warp - 1];
    if (t < num_tiles) tiles[t] = before + warps_before + up_to_here - own;
    before += sums[kLanes - 1];
    __syncthreads();
  }
  if (threadIdx.x == 0) *total = before;
}

template <typename Id>
__global__ void __launch_bounds__(kBlock)
    NumberKernel(DistinctBatch batch, uint32_t num_ids) {
  __shared__ uint32_t before[kLanes];  // of round j and warp w: j * kWarps + w
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  const uint32_t begin =
      blockIdx.x * static_cast<uint32_t>(kDistinctTile) + threadIdx.x;
  unsigned masks[kRounds];
#pragma unroll
  for (int j = 0; j < kRounds; ++j) {
    const uint32_t i = begin + j * kBlock;
    masks[j] = __ballot_sync(kAll, i < num_ids && batch.heads[i] == i);
    if (lane == 0) before[j * kWarps + warp] = __popc(masks[j]);
  }
  __syncthreads();
  if (warp == 0) {
    const uint32_t own = before[lane];
    before[lane] = WarpSum(own, lane) - own;
  }
  __syncthreads();
  const uint32_t first = batch.tiles[blockIdx.x];
#pragma unroll
  for (int j = 0; j < kRounds; ++j) {
    if (((masks[j] >> lane) & 1) == 0) continue;
    const uint32_t i = begin + j * kBlock;
    const uint32_t u = first + before[j * kWarps + warp] +
                       __popc(masks[j] & ((1u << lane) - 1));
    batch.keys[u] = KeyAt<Id>(batch, i);
    batch.counts[u] = 0;
    batch.heads[i] = kNumbered | u;
  }
}

__global__ void __launch_bounds__(kBlock)
    AssignKernel(DistinctBatch batch, uint32_t num_ids) {
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  const bool mine = i < num_ids;
  const unsigned active = __ballot_sync(kAll, mine);
  if (!mine) return;
  const uint32_t head = batch.heads[i];
  const uint32_t numbered = (head & kNumbered) != 0 ? head : batch.heads[head];
  const uint32_t u = numbered & ~kNumbered;
  batch.inverse[i] = static_cast<int32_t>(u);
  __syncwarp(active);
  const unsigned same = __match_any_sync(active, u);
  if (static_cast<int>(threadIdx.x % kLanes) == __ffs(same) - 1) {
    atomicAdd(batch.counts + u, __popc(same));
  }
}

// Up to 12 bytes beyond the last are sent along, which is in the arrays.
__global__ void __launch_bounds__(kBlock) SendKernel(DistinctBatch batch) {
  const uint32_t num_unique = *batch.num_unique;
  const uint32_t begin = blockIdx.x * kBlock + threadIdx.x;
  const uint32_t step = gridDim.x * kBlock;
  const ulonglong2* keys = reinterpret_cast<const ulonglong2*>(batch.keys);
  ulonglong2* keys_to = reinterpret_cast<ulonglong2*>(batch.sent.keys);
  for (uint32_t k = begin; k < (num_unique + 1) / 2; k += step) {
    keys_to[k] = keys[k];
  }
  const uint4* counts = reinterpret_cast<const uint4*>(batch.counts);
  uint4* counts_to = reinterpret_cast<uint4*>(batch.sent.counts);
  for (uint32_t k = begin; k < (num_unique + 3) / 4; k += step) {
    counts_to[k] = counts[k];
  }
  if (begin == 0) *batch.sent.num_unique = num_unique;
}

template <typename Id>
Status Launch(const DistinctBatch& batch, cudaStream_t stream) {
  const int64_t n = batch.num_ids;
  const uint32_t num_ids = static_cast<uint32_t>(n);
  const uint32_t buckets = static_cast<uint32_t>(NumDistinctEntries(n) / 4);
  const unsigned blocks = static_cast<unsigned>((n + kBlock - 1) / kBlock);
  const unsigned tiles = static_cast<unsigned>(NumDistinctTiles(n));
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemsetAsync(batch.entries, 0xFF,
                      NumDistinctEntries(n) * sizeof(*batch.entries), stream));
  InsertKernel<Id><<<blocks, kBlock, 0, stream>>>(batch, num_ids, buckets);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("InsertKernel");
  HeadsKernel<<<tiles, kBlock, 0, stream>>>(batch, num_ids);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("HeadsKernel");
  ScanTilesKernel<<<1, kScanBlock, 0, stream>>>(batch.tiles, tiles,
                                                batch.num_unique);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("ScanTilesKernel");
  NumberKernel<Id><<<tiles, kBlock, 0, stream>>>(batch, num_ids);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("NumberKernel");
  AssignKernel<<<blocks, kBlock, 0, stream>>>(batch, num_ids);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("AssignKernel");
  SendKernel<<<std::min<unsigned>(blocks, kMaxSendBlocks), kBlock, 0, stream>>>(
      batch);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("SendKernel");
  return Status::OK();
}

}  // namespace

Status LaunchDistinct(const DistinctBatch& batch, StreamView stream) {
  return batch.is_narrow ? Launch<int32_t>(batch, stream.get())
                         : Launch<int64_t>(batch, stream.get());
}

}  // namespace gpu
}  // namespace ev

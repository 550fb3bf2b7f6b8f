// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Groups ids by row in two steps. First, a table's ids are scattered to bins by
// a hash of their row: they are counted per bin, then written to their bin as
// pairs of row and sample. The number of bins is chosen so that a bin has about
// kBinIds ids. Then one block groups each bin in shared memory. Bins have about
// the same number of distinct keys; frequent keys make some bins heavy, and
// those are grouped first.
//
// An id costs two reads and one write of global memory and a few words of
// shared memory. Global atomics are per tile and bin, not per id.

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/warp.cuh"
#include "kernels/engine/gpu_step/group.h"
#include "kernels/engine/gpu_step/step_plan.cuh"

namespace ev {
namespace gpu {
namespace {

constexpr int kPerThread = kScatterTile / kScatterBlock;

__device__ __forceinline__ uint32_t BinInTable(const StepTable& table,
                                               uint32_t row) {
  // Uses other hash bits than FirstEntry and Part.
  uint32_t h = row * 0xC2B2AE35u;
  h = (h ^ (h >> 15)) * 0x27D4EB2Fu;
  return __umulhi(h ^ (h >> 13), table.num_bins);
}

// The ids of one block of the scatter kernels.
struct Tile {
  int64_t first;  // first occurrence
  int64_t left;   // ids from 'first' to the table's end
};
__device__ __forceinline__ Tile TileOf(const StepPlan& plan,
                                       const StepTable& table, int t) {
  const int64_t local =
      static_cast<int64_t>(blockIdx.x - __ldg(plan.scatter_tiles + t)) *
      kScatterTile;
  return {table.id_begin + local, table.num_ids - local};
}

__global__ void __launch_bounds__(kScatterBlock)
    CountBinsKernel(StepPlan plan) {
  __shared__ uint32_t counts[kMaxBins];
  const int t =
      TableOfBlock(plan.scatter_tiles, 0, plan.num_tables, blockIdx.x);
  const StepTable& table = plan.tables[t];
  const uint32_t num_bins = table.num_bins;
  const Tile tile = TileOf(plan, table, t);
  uint32_t rows[kPerThread];
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int at = j * kScatterBlock + threadIdx.x;
    rows[j] = at < tile.left ? plan.rows[tile.first + at] : kNoRow;
  }
  for (uint32_t b = threadIdx.x; b < num_bins; b += kScatterBlock) {
    counts[b] = 0;
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    if (rows[j] != kNoRow) atomicAdd(counts + BinInTable(table, rows[j]), 1u);
  }
  __syncthreads();
  for (uint32_t b = threadIdx.x; b < num_bins; b += kScatterBlock) {
    const uint32_t count = counts[b];
    if (count != 0) atomicAdd(plan.bin_counts + table.bin_begin + b, count);
  }
}

// Assigns each bin a range of pairs. The order of the ranges does not matter.
__global__ void __launch_bounds__(kStepBlock)
    PlaceBinsKernel(StepPlan plan, uint32_t num_bins) {
  const uint32_t bin = blockIdx.x * kStepBlock + threadIdx.x;
  const int lane = threadIdx.x & (kWarp - 1);
  const uint32_t count = bin < num_bins ? plan.bin_counts[bin] : 0;
  const uint32_t sum = WarpSum(count, lane);
  uint32_t first = 0;
  if (lane == kWarp - 1) first = atomicAdd(&plan.counts->pairs, sum);
  first = __shfl_sync(kAllLanes, first, kWarp - 1);
  if (bin < num_bins) plan.bin_ends[bin] = first + sum - count;
  if (count > kHeavyBin) {
    plan.heavy[atomicAdd(&plan.counts->heavy, 1u)] = bin;
  }
}

// Sorts a tile's pairs by bin in shared memory first, so that the pairs of a
// bin are written to global memory together.
__global__ void __launch_bounds__(kScatterBlock, 2)
    ScatterKernel(StepPlan plan) {
  constexpr int kBinsEach = kMaxBins / kScatterBlock;
  __shared__ uint2 ordered[kScatterTile];
  // Per bin, in turn: the number of its pairs in the tile; their start in
  // 'ordered'; the distance from that start to their place in plan.pairs.
  __shared__ uint32_t bins[kMaxBins];
  __shared__ uint32_t warp_sums[kScatterBlock / kWarp];
  const int t =
      TableOfBlock(plan.scatter_tiles, 0, plan.num_tables, blockIdx.x);
  const StepTable& table = plan.tables[t];
  const uint32_t num_bins = table.num_bins;
  const Tile tile = TileOf(plan, table, t);
  const int lane = threadIdx.x & (kWarp - 1), warp = threadIdx.x / kWarp;
  uint2 pairs[kPerThread];
  uint32_t numbers[kPerThread];
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int at = j * kScatterBlock + threadIdx.x;
    pairs[j] = make_uint2(kNoRow, 0);
    if (at < tile.left) {
      const uint32_t i = static_cast<uint32_t>(tile.first + at);
      pairs[j].x = plan.rows[i];
      pairs[j].y = SampleOf(plan, table, i);
    }
  }
  for (uint32_t b = threadIdx.x; b < num_bins; b += kScatterBlock) {
    bins[b] = 0;
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    numbers[j] = 0;
    if (pairs[j].x != kNoRow) {
      numbers[j] = atomicAdd(bins + BinInTable(table, pairs[j].x), 1u);
    }
  }
  __syncthreads();
  uint32_t shifts[kBinsEach];
  uint32_t sum = 0;
#pragma unroll
  for (int e = 0; e < kBinsEach; ++e) {
    const uint32_t b = threadIdx.x * kBinsEach + e;
    const uint32_t count = b < num_bins ? bins[b] : 0;
    shifts[e] = count;
    sum += count;
  }
  const uint32_t inclusive = WarpSum(sum, lane);
  if (lane == kWarp - 1) warp_sums[warp] = inclusive;
  __syncthreads();
  uint32_t begin = inclusive - sum, total = 0;
#pragma unroll
  for (int w = 0; w < kScatterBlock / kWarp; ++w) {
    if (w < warp) begin += warp_sums[w];
    total += warp_sums[w];
  }
#pragma unroll
  for (int e = 0; e < kBinsEach; ++e) {
    const uint32_t b = threadIdx.x * kBinsEach + e;
    const uint32_t count = shifts[e];
    if (count == 0) continue;
    bins[b] = begin;
    shifts[e] = atomicAdd(plan.bin_ends + table.bin_begin + b, count) - begin;
    begin += count;
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    if (pairs[j].x == kNoRow) continue;
    ordered[bins[BinInTable(table, pairs[j].x)] + numbers[j]] = pairs[j];
  }
  __syncthreads();
#pragma unroll
  for (int e = 0; e < kBinsEach; ++e) {
    const uint32_t b = threadIdx.x * kBinsEach + e;
    if (b < num_bins) bins[b] = shifts[e];
  }
  __syncthreads();
  for (uint32_t p = threadIdx.x; p < total; p += kScatterBlock) {
    const uint2 pair = ordered[p];
    plan.pairs[bins[BinInTable(table, pair.x)] + p] = pair;
  }
}

constexpr uint32_t kEntriesLog2 = 11;
constexpr uint32_t kEntries = 1u << kEntriesLog2;
static_assert(kEntries < 1 << 16, "their numbers are added up in 16 bits");
constexpr int kEntriesEach = kEntries / kStepBlock;
constexpr uint32_t kMaxProbes = 64;
// Ids of a bin whose lists fit in shared memory.
constexpr uint32_t kSharedList = 2048;
constexpr int kAhead = 4;  // pairs in flight per thread

// Next free places of a block in the lists of keys. The block reserves all its
// places at once.
struct ListPlaces {
  uint32_t small, long_key;
};

// Adds a key to longs, and to huge if it has more than kWarpSort occurrences;
// advances at->long_key.
__device__ __forceinline__ void ListLong(const StepPlan& plan, int dim_class,
                                         uint32_t row, uint32_t table,
                                         uint32_t start, uint32_t count,
                                         ListPlaces* at) {
  const int64_t base = plan.long_base[dim_class];
  if (count > kWarpSort) {
    plan.huge[atomicAdd(&plan.counts->huge, 1u)] =
        static_cast<uint32_t>(base + at->long_key);
  }
  plan.longs[base + at->long_key] = {row, table, start, count};
  ++at->long_key;
}

// A hash table with linear probing, from row to count and list.
struct GroupShared {
  uint32_t rows[kEntries];  // kNoRow: free
  uint32_t counts[kEntries];
  // End of the key's list; of its filled part while it is filled.
  uint32_t ends[kEntries];
  uint32_t list[kSharedList];
  // Entry of each element of 'list'; kEntries for elements of long keys, which
  // are not in 'list'.
  uint16_t owners[kSharedList];
  unsigned long long warp_sums[kStepBlock / kWarp];
  uint32_t warp_longs[kStepBlock / kWarp];
  ListPlaces places;
  uint32_t overflow;
};

__device__ __forceinline__ uint32_t FirstEntry(uint32_t row) {
  return (row * 0x9E3779B1u) >> (32 - kEntriesLog2);
}
// Finds or inserts a row. Returns kEntries if the table is too full.
__device__ __forceinline__ uint32_t TakeEntry(GroupShared* shared,
                                              uint32_t row) {
  uint32_t e = FirstEntry(row);
  for (uint32_t probe = 0; probe < kMaxProbes; ++probe) {
    const uint32_t was = atomicCAS(shared->rows + e, kNoRow, row);
    if (was == kNoRow || was == row) return e;
    e = (e + 1) & (kEntries - 1);
  }
  return kEntries;
}
__device__ __forceinline__ uint32_t EntryOf(const GroupShared& shared,
                                            uint32_t row) {
  uint32_t e = FirstEntry(row);
  while (shared.rows[e] != row) e = (e + 1) & (kEntries - 1);
  return e;
}

// Part: the rows of a bin that are grouped in one pass, which are those whose
// hash is 'residue' modulo 'modulus'. The first part is all rows. If its rows
// overflow shared memory, it is halved, and the other half follows in a later
// pass.
struct Part {
  uint32_t modulus = 1, residue = 0;
  bool done = false;

  __device__ __forceinline__ bool Has(uint32_t row) const {
    uint32_t h = row * 0x85EBCA6Bu;
    h ^= h >> 15;
    return (h & (modulus - 1)) == residue;
  }
  __device__ __forceinline__ void Halve() { modulus *= 2; }
  __device__ __forceinline__ void Next() {
    while (modulus > 1 && (residue & (modulus / 2)) != 0) {
      modulus /= 2;
      residue ^= modulus;
    }
    if (modulus == 1) {
      done = true;
    } else {
      residue |= modulus / 2;
    }
  }
};

// Returns true if a small key's samples are in 'sorted' instead of in the
// SmallKey.
__device__ __forceinline__ bool IsListed(uint32_t count) { return count > 2; }

// Writes the k-th element of the unordered list[0, count) to its sorted place.
// start: start of the key's list in plan.sorted.
__device__ __forceinline__ void Rank(const StepPlan& plan, const uint32_t* list,
                                     uint32_t start, uint32_t count,
                                     uint32_t k) {
  const uint32_t mine = list[k];
  uint32_t rank = 0;
  for (uint32_t l = 0; l < count; ++l) {
    rank += list[l] < mine || (list[l] == mine && l < k) ? 1 : 0;
  }
  plan.sorted[start + rank] = mine;
}

// Makes the SmallKey of a list of at most kSmallCount samples, without row,
// table and count.
__device__ __forceinline__ SmallKey MakeSmall(const uint32_t* list,
                                              uint32_t start, uint32_t count) {
  SmallKey key = {};
  if (count == 1) {
    key.a = list[0];
  } else if (IsListed(count)) {
    key.a = start;
  } else {
    key.a = min(list[0], list[1]);
    key.b = max(list[0], list[1]);
  }
  return key;
}

// kHeavy: the lanes of a warp that have the same row share one atomic, which
// pays where rows repeat.
template <bool kHeavy>
__device__ __forceinline__ void CountPair(const Part& part, uint32_t row,
                                          GroupShared* shared) {
  const bool has = row != kNoRow && part.Has(row);
  const uint32_t plain = has ? row : kNoRow;
  uint32_t e = kEntries;
  if (kHeavy) {
    const unsigned same = __match_any_sync(kAllLanes, plain);
    const int leader = __ffs(same) - 1;
    if (has && leader == static_cast<int>(threadIdx.x & (kWarp - 1))) {
      e = TakeEntry(shared, plain);
      if (e != kEntries) atomicAdd(shared->counts + e, __popc(same));
    }
    e = __shfl_sync(kAllLanes, e, leader);
  } else if (has) {
    e = TakeEntry(shared, plain);
    if (e != kEntries) atomicAdd(shared->counts + e, 1u);
  }
  if (!has) return;
  if (e == kEntries) atomicExch(&shared->overflow, 1u);
}
template <bool kHeavy>
__device__ __forceinline__ void PlacePair(const StepPlan& plan,
                                          const Part& part, uint2 pair,
                                          uint32_t first, bool list_in_shared,
                                          GroupShared* shared) {
  const bool has = pair.x != kNoRow && part.Has(pair.x);
  const uint32_t plain = has ? pair.x : kNoRow;
  uint32_t e = 0, at = 0;
  if (kHeavy) {
    const int lane = threadIdx.x & (kWarp - 1);
    const unsigned same = __match_any_sync(kAllLanes, plain);
    const int leader = __ffs(same) - 1;
    if (has && leader == lane) {
      e = EntryOf(*shared, plain);
      at = atomicAdd(shared->ends + e, __popc(same));
    }
    e = __shfl_sync(kAllLanes, e, leader);
    at = __shfl_sync(kAllLanes, at, leader) + __popc(same & ((1u << lane) - 1));
  } else if (has) {
    e = EntryOf(*shared, plain);
    at = atomicAdd(shared->ends + e, 1u);
  }
  if (!has) return;
  const bool is_small = shared->counts[e] <= kSmallCount;
  if (list_in_shared) shared->owners[at] = is_small ? e : kEntries;
  if (list_in_shared && is_small) {
    shared->list[at] = pair.y;
  } else {
    plan.order[first + at] = pair.y;
  }
}

// Groups pairs [first, first + size). Called by all threads of a block.
template <bool kHeavy>
__device__ __forceinline__ void GroupBin(const StepPlan& plan, int t,
                                         uint32_t first, uint32_t size,
                                         GroupShared* shared) {
  const StepTable& table = plan.tables[t];
  const int lane = threadIdx.x & (kWarp - 1), warp = threadIdx.x / kWarp;
  const bool list_in_shared = size <= kSharedList;
  const uint2* pairs = plan.pairs + first;
  Part part;
  while (!part.done) {
#pragma unroll
    for (int j = 0; j < kEntriesEach; ++j) {
      const int e = j * kStepBlock + threadIdx.x;
      shared->rows[e] = kNoRow;
      shared->counts[e] = 0;
    }
    if (threadIdx.x == 0) shared->overflow = 0;
    __syncthreads();
    for (uint32_t base = 0; base < size; base += kAhead * kStepBlock) {
      uint32_t rows[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const uint32_t p = base + u * kStepBlock + threadIdx.x;
        rows[u] = p < size ? pairs[p].x : kNoRow;
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) CountPair<kHeavy>(part, rows[u], shared);
    }
    __syncthreads();
    if (shared->overflow != 0) {
      __syncthreads();
      part.Halve();
      continue;
    }
    // Prefix sums over the block's keys, packed into one word: the high half
    // counts ids, the next 16 bits small keys of several ids, the low 16 bits
    // keys of one id. Long keys are counted apart.
    unsigned long long mine = 0;
    uint32_t mine_long = 0;
#pragma unroll
    for (int j = 0; j < kEntriesEach; ++j) {
      const uint32_t count = shared->counts[j * kStepBlock + threadIdx.x];
      mine += static_cast<unsigned long long>(count) << 32;
      if (count > kSmallCount) {
        ++mine_long;
      } else if (count > 1) {
        mine += 1 << 16;
      } else {
        mine += count;
      }
    }
    const unsigned long long inclusive = WarpSum(mine, lane);
    const uint32_t inclusive_long = WarpSum(mine_long, lane);
    if (lane == kWarp - 1) {
      shared->warp_sums[warp] = inclusive;
      shared->warp_longs[warp] = inclusive_long;
    }
    __syncthreads();
    unsigned long long before = inclusive - mine, total = 0;
    uint32_t before_long = inclusive_long - mine_long, total_long = 0;
#pragma unroll
    for (int w = 0; w < kStepBlock / kWarp; ++w) {
      if (w < warp) {
        before += shared->warp_sums[w];
        before_long += shared->warp_longs[w];
      }
      total += shared->warp_sums[w];
      total_long += shared->warp_longs[w];
    }
    if (threadIdx.x == 0) {
      ClassCounts& counts = plan.counts->of[table.dim_class];
      shared->places.small = atomicAdd(
          &counts.small,
          static_cast<unsigned>((total & 0xFFFF) + ((total >> 16) & 0xFFFF)));
      if (total_long != 0) {
        shared->places.long_key = atomicAdd(&counts.longs, total_long);
      }
    }
    uint32_t at = static_cast<uint32_t>(before >> 32);
#pragma unroll
    for (int j = 0; j < kEntriesEach; ++j) {
      const int e = j * kStepBlock + threadIdx.x;
      shared->ends[e] = at;
      at += shared->counts[e];
    }
    __syncthreads();
    for (uint32_t base = 0; base < size; base += kAhead * kStepBlock) {
      uint2 pair[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const uint32_t p = base + u * kStepBlock + threadIdx.x;
        pair[u] = p < size ? pairs[p] : make_uint2(kNoRow, 0);
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        PlacePair<kHeavy>(plan, part, pair[u], first, list_in_shared, shared);
      }
    }
    __syncthreads();
    if (list_in_shared) {
      const uint32_t placed = static_cast<uint32_t>(total >> 32);
      for (uint32_t p = threadIdx.x; p < placed; p += kStepBlock) {
        const uint32_t e = shared->owners[p];
        if (e == kEntries) continue;
        const uint32_t count = shared->counts[e];
        const uint32_t start = shared->ends[e] - count;
        if (IsListed(count)) {
          Rank(plan, shared->list + start, first + start, count, p - start);
        }
      }
    }
    // Keys of one id come first, so that most warps of the update have only
    // such keys, which need no list.
    SmallKey* const small =
        plan.small + plan.id_base[table.dim_class] + shared->places.small;
    uint32_t single = static_cast<uint32_t>(before & 0xFFFF);
    uint32_t several =
        static_cast<uint32_t>((total & 0xFFFF) + ((before >> 16) & 0xFFFF));
    ListPlaces places = shared->places;
    places.long_key += before_long;
#pragma unroll 1
    for (int j = 0; j < kEntriesEach; ++j) {
      const int e = j * kStepBlock + threadIdx.x;
      const uint32_t count = shared->counts[e];
      const uint32_t row = shared->rows[e];
      const uint32_t start = shared->ends[e] - count;
      if (count != 0 && count <= kSmallCount) {
        const uint32_t* const list =
            list_in_shared ? shared->list + start : plan.order + first + start;
        if (!list_in_shared && IsListed(count)) {
          for (uint32_t k = 0; k < count; ++k) {
            Rank(plan, list, first + start, count, k);
          }
        }
        SmallKey key = MakeSmall(list, first + start, count);
        key.row = row;
        key.table_and_count = static_cast<uint32_t>(t) << 8 | count;
        *reinterpret_cast<uint4*>(small + (count == 1 ? single++ : several++)) =
            *reinterpret_cast<const uint4*>(&key);
      }
      if (count > kSmallCount) {
        ListLong(plan, table.dim_class, row, t, first + start, count, &places);
      }
    }
    first += static_cast<uint32_t>(total >> 32);
    __syncthreads();
    part.Next();
  }
}

// The first heavy_blocks blocks group the heavy bins; each other block groups
// one bin.
__global__ void __launch_bounds__(kStepBlock, 5)
    GroupKernel(StepPlan plan, int heavy_blocks) {
  __shared__ GroupShared shared;
  if (static_cast<int>(blockIdx.x) < heavy_blocks) {
    const uint32_t n = plan.counts->heavy;
    for (uint32_t k = blockIdx.x; k < n; k += heavy_blocks) {
      const uint32_t bin = plan.heavy[k];
      const int t = TableOfBlock(plan.bins, 0, plan.num_tables, bin);
      const uint32_t size = plan.bin_counts[bin];
      GroupBin<true>(plan, t, plan.bin_ends[bin] - size, size, &shared);
    }
    return;
  }
  const int bin = blockIdx.x - heavy_blocks;
  const uint32_t size = plan.bin_counts[bin];
  if (size == 0 || size > kHeavyBin) return;
  const int t = TableOfBlock(plan.bins, 0, plan.num_tables, bin);
  GroupBin<false>(plan, t, plan.bin_ends[bin] - size, size, &shared);
}

}  // namespace

Status LaunchGroup(const StepPlan& plan, int num_tiles, int num_bins,
                   int num_processors, StreamView stream) {
  const cudaStream_t s = stream.get();
  CountBinsKernel<<<num_tiles, kScatterBlock, 0, s>>>(plan);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("CountBinsKernel");
  PlaceBinsKernel<<<(num_bins + kStepBlock - 1) / kStepBlock, kStepBlock, 0,
                    s>>>(plan, num_bins);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("PlaceBinsKernel");
  ScatterKernel<<<num_tiles, kScatterBlock, 0, s>>>(plan);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("ScatterKernel");
  const int heavy_blocks = 2 * num_processors;
  GroupKernel<<<heavy_blocks + num_bins, kStepBlock, 0, s>>>(plan,
                                                             heavy_blocks);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("GroupKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

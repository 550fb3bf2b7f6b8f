// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Dedup by hashing in a scratch table that a step fills once. An entry is 8
// bytes, 32 bits of the key's hash and its head, so that a key that meets
// another is told apart without a second touch and only a likely duplicate is
// compared with the key itself. Four entries, one sector, are read at once: a
// warp waits for the longest walk of its keys, and entry by entry that was five
// times as long. Blocks run in the order of the ids: of a table's
// scratch, 16 bytes per id, only a few tables' worth is in use at a time, and
// that stays in L2 whatever the batch.
//
// Equal keys in a warp speak with one voice: a hot key costs one atomic per
// warp that has it.

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/embedding/gpu/dedup.h"
#include "kernels/engine/embedding/gpu/step_plan.cuh"
#include "kernels/engine/table/gpu/warp_probe.cuh"

namespace ev {
namespace gpu {
namespace {

constexpr unsigned long long kNobody = ~0ULL;

__global__ void __launch_bounds__(kStepBlock) DedupKernel(StepPlan plan) {
  const int t = TableOfBlock(plan.dedup_tiles, 0, plan.num_tables, blockIdx.x);
  const int64_t id_begin = plan.tables[t].id_begin;
  const int64_t num_ids = plan.tables[t].num_ids;
  const int64_t local =
      static_cast<int64_t>(blockIdx.x - __ldg(plan.dedup_tiles + t)) *
          kStepBlock +
      threadIdx.x;
  const bool mine = local < num_ids;
  const uint32_t i = static_cast<uint32_t>(id_begin + local);
  const int64_t key = mine ? __ldg(plan.ids + i) : 0;
  const int lane = threadIdx.x & (kWarp - 1);

  const unsigned active = __ballot_sync(kAllLanes, mine);
  unsigned same = 0;
  if (mine) same = __match_any_sync(active, key);
  const int leader = __ffs(same) - 1;
  uint32_t head = i, before = 0;
  bool winner = false;
  if (mine && lane == leader) {
    const uint64_t hash = MixKey(key);
    const uint32_t buckets = static_cast<uint32_t>((num_ids + 1) / 2);
    unsigned long long* entries = plan.scratch + 2 * id_begin + 4 * t;
    const unsigned long long tag = hash << 32;
    uint32_t bucket = ScaleHash(static_cast<uint32_t>(hash >> 32), buckets);
    bool found = false;
    while (!found) {
      unsigned long long* four = entries + 4 * static_cast<size_t>(bucket);
      const longlong2 a =
          LoadTwoSlots<Slots::kLive>(reinterpret_cast<const int64_t*>(four));
      const longlong2 b = LoadTwoSlots<Slots::kLive>(
          reinterpret_cast<const int64_t*>(four + 2));
      const unsigned long long seen[4] = {static_cast<unsigned long long>(a.x),
                                          static_cast<unsigned long long>(a.y),
                                          static_cast<unsigned long long>(b.x),
                                          static_cast<unsigned long long>(b.y)};
      int free = -1;
#pragma unroll
      for (int k = 3; k >= 0; --k) {
        if (seen[k] == kNobody) {
          free = k;
        } else if (((seen[k] ^ tag) >> 32) == 0 &&
                   __ldg(plan.ids + static_cast<uint32_t>(seen[k])) == key) {
          head = static_cast<uint32_t>(seen[k]);
          found = true;
        }
      }
      if (found) break;
      if (free < 0) {
        if (++bucket == buckets) bucket = 0;
        continue;
      }
      // Entries are taken in order, so an equal key meets this one here.
      const unsigned long long was = atomicCAS(four + free, kNobody, tag | i);
      if (was == kNobody) {
        winner = found = true;
      } else if (((was ^ tag) >> 32) == 0 &&
                 __ldg(plan.ids + static_cast<uint32_t>(was)) == key) {
        head = static_cast<uint32_t>(was);
        found = true;
      }
    }
    const uint32_t more = __popc(same) - (winner ? 1 : 0);
    if (more != 0) {
      before = atomicAdd(plan.duplicates + head, more) + (winner ? 0 : 1);
    }
  }
  head = __shfl_sync(kAllLanes, head, leader & (kWarp - 1));
  before = __shfl_sync(kAllLanes, before, leader & (kWarp - 1));
  if (mine) {
    // The head is number 0 of its key.
    const uint32_t number =
        winner ? 0 : before + __popc(same & ((1u << lane) - 1));
    plan.heads[i] = make_uint2(head, number);
  }
}

// Inclusive sum over the warp.
template <typename T>
__device__ __forceinline__ T WarpSum(T v, int lane) {
#pragma unroll
  for (int d = 1; d < kWarp; d *= 2) {
    const T other = __shfl_up_sync(kAllLanes, v, d);
    if (lane >= d) v += other;
  }
  return v;
}

// Appends the warp's long keys: lanes with count 0 have none.
__device__ __forceinline__ void AppendLong(const StepPlan& plan, int dim_class,
                                           uint32_t head, uint32_t table,
                                           uint32_t start, uint32_t count) {
  const int lane = threadIdx.x & (kWarp - 1);
  const bool is_long = count != 0;
  const unsigned mask = __ballot_sync(kAllLanes, is_long);
  if (mask == 0) return;
  const uint32_t num_chunks = (count + kChunk - 1) / kChunk;
  const uint32_t partials = num_chunks > 1 ? num_chunks : 0;
  const uint32_t chunk_sum = WarpSum(num_chunks, lane);
  const uint32_t partial_sum = WarpSum(partials, lane);
  unsigned long long first = 0;
  uint32_t first_partial = 0;
  ClassCounts& counts = plan.counts->of[dim_class];
  if (lane == kWarp - 1) {
    first = atomicAdd(
        &counts.longs_and_chunks,
        (static_cast<unsigned long long>(chunk_sum) << 32) + __popc(mask));
    if (partial_sum != 0) {
      first_partial = atomicAdd(&counts.partials, partial_sum);
    }
  }
  first = __shfl_sync(kAllLanes, first, kWarp - 1);
  first_partial = __shfl_sync(kAllLanes, first_partial, kWarp - 1);
  if (!is_long) return;
  const uint32_t number =
      static_cast<uint32_t>(first) + __popc(mask & ((1u << lane) - 1));
  const uint32_t chunk =
      static_cast<uint32_t>(first >> 32) + chunk_sum - num_chunks;
  const int64_t base = plan.long_base[dim_class];
  if (count > kWarpSort) {
    plan.huge[atomicAdd(&plan.counts->huge, 1u)] =
        static_cast<uint32_t>(base + number);
  }
  plan.longs[base + number] = {head, table, start, count,
                               first_partial + partial_sum - partials};
  for (uint32_t c = 0; c < num_chunks; ++c) {
    plan.chunks[base + chunk + c] = {number, c};
  }
}

__global__ void __launch_bounds__(kStepBlock, 4)
    FindAndListKernel(StepPlan plan, const TableView* __restrict__ views) {
  constexpr int kPerThread = kListTile / kStepBlock;
  __shared__ unsigned long long warp_sums[kStepBlock / kWarp];
  __shared__ unsigned long long block_first;
  const int t = TableOfBlock(plan.list_tiles, 0, plan.num_tables, blockIdx.x);
  const int64_t id_begin = plan.tables[t].id_begin;
  const int64_t num_ids = plan.tables[t].num_ids;
  const int dim_class = plan.tables[t].dim_class;
  const int64_t first =
      static_cast<int64_t>(blockIdx.x - __ldg(plan.list_tiles + t)) *
          kListTile +
      threadIdx.x * kPerThread;
  const int lane = threadIdx.x & (kWarp - 1), warp = threadIdx.x / kWarp;

  const TableView view = views[t];
  uint32_t counts[kPerThread];
  int64_t slots[kPerThread];
  unsigned long long sum = 0;  // keys in small, and << 32 places in order
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const uint32_t i = static_cast<uint32_t>(id_begin + first + j);
    counts[j] = 0;
    const bool is_head = first + j < num_ids && plan.heads[i].x == i;
    const int64_t key = is_head ? __ldg(plan.ids + i) : 0;
    slots[j] = FindInWarp<Slots::kFrozen>(view, key, is_head);
    const bool absent = is_head && slots[j] < 0;
    if (is_head) {
      const uint32_t duplicates = plan.duplicates[i];
      if (duplicates != 0) plan.duplicates[i] = 0;
      counts[j] = duplicates + 1;
      if (counts[j] > 1) {
        sum += static_cast<unsigned long long>(counts[j]) << 32;
      }
      if (counts[j] <= kSmallCount) ++sum;
    }
    const unsigned mask = __ballot_sync(kAllLanes, absent);
    if (mask != 0) {
      unsigned at = 0;
      if (lane == 0) at = atomicAdd(&plan.counts->absent, __popc(mask));
      at = __shfl_sync(kAllLanes, at, 0);
      if (absent) {
        plan.absent[at + __popc(mask & ((1u << lane) - 1))] = make_uint2(i, t);
      }
    }
  }
  const unsigned long long inclusive = WarpSum(sum, lane);
  if (lane == kWarp - 1) warp_sums[warp] = inclusive;
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned long long total = 0;
    for (int w = 0; w < kStepBlock / kWarp; ++w) {
      const unsigned long long s = warp_sums[w];
      warp_sums[w] = total;
      total += s;
    }
    block_first = atomicAdd(&plan.counts->of[dim_class].small_and_order, total);
  }
  __syncthreads();
  unsigned long long at = block_first + warp_sums[warp] + inclusive - sum;
  uint2* small = plan.small + plan.id_base[dim_class];
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const uint32_t i = static_cast<uint32_t>(id_begin + first + j);
    const uint32_t count = counts[j];
    uint32_t start = kNoStart;
    if (count > 1) {
      start = static_cast<uint32_t>(plan.id_base[dim_class] + (at >> 32));
      at += static_cast<unsigned long long>(count) << 32;
    }
    if (count != 0) {
      HeadRecord record;
      record.row = slots[j];
      record.start = start;
      record.count = count;
      *reinterpret_cast<int4*>(plan.records + i) =
          *reinterpret_cast<const int4*>(&record);
      if (count <= kSmallCount) {
        small[static_cast<uint32_t>(at)] = make_uint2(i, t);
        ++at;
      }
    }
    AppendLong(plan, dim_class, i, t, start, count > kSmallCount ? count : 0);
  }
}

}  // namespace

Status LaunchDedup(const StepPlan& plan, int num_blocks, StreamView stream) {
  DedupKernel<<<num_blocks, kStepBlock, 0, stream.get()>>>(plan);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("DedupKernel");
  return Status::OK();
}

Status LaunchFindAndList(const StepPlan& plan, const TableView* views,
                         int num_blocks, StreamView stream) {
  FindAndListKernel<<<num_blocks, kStepBlock, 0, stream.get()>>>(plan, views);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("FindAndListKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

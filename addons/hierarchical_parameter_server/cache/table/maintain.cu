// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Erases keys, empties a table, and lists its keys.

#include "addons/hierarchical_parameter_server/cache/table/launch.cuh"
#include "kernels/engine/base/gpu/cuda_error.h"

namespace ev {
namespace gpu {
namespace {

template <bool kOneTable, bool kZeroScores>
__global__ void __launch_bounds__(kBlock)
    EraseKernel(Batch batch, int64_t* __restrict__ slots,
                int64_t* size_counters) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  const bool mine = i < batch.num_keys;
  const int64_t key = mine ? batch.keys[i] : 0;
  int t = 0;
  TableView view = batch.only;
  if (!kOneTable && mine) {
    t = BatchTable<kOneTable>(batch, i);
    view = batch.views[t];
  }
  const uint64_t hash = MixKey(key);
  Chain chain;
  if (mine) chain = Chain(hash, view);
  bool wanted = mine;
  int64_t slot = -1;
  uint32_t probes = 0;
  while (__any_sync(kAllLanes, wanted)) {
    const int64_t first = wanted ? chain.first_slot() : 0;
    const Seen seen =
        ProbeWarp<Slots::kLive, Want::kMatch>(view.keys + first, key, wanted);
    if (!wanted) continue;
    if (seen.match != 0) {
      const int64_t at = first + SlotOfBit(__ffs(seen.match) - 1);
      // An empty slot proves that the bucket was never full, and no erase of
      // this kernel can invalidate that.
      const int64_t mark =
          seen.empty ? EmptyMark(chain.parity) : ErasedMark(chain.parity);
      const int64_t was = static_cast<int64_t>(
          atomicCAS(reinterpret_cast<unsigned long long*>(view.keys + at),
                    static_cast<unsigned long long>(key),
                    static_cast<unsigned long long>(mark)));
      if (was == key) {  // else another occurrence was first
        slot = at;
        if (kZeroScores) view.scores[at] = 0;
      }
      wanted = false;
    } else {
      if (seen.empty || ++probes == view.probe_limit) wanted = false;
      chain.Next();
    }
  }
  if (mine && slots != nullptr) slots[i] = slot;
  CountInWarp(size_counters, t, slot >= 0, blockIdx.x, true);
}

__global__ void __launch_bounds__(kBlock)
    ClearKernel(TableView view, int64_t num_pairs_of_slots) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kBlock;
  longlong2* const keys = reinterpret_cast<longlong2*>(view.keys);
  longlong2* const scores = reinterpret_cast<longlong2*>(view.scores);
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
       i < num_pairs_of_slots; i += stride) {
    const int64_t mark = EmptyMark((i / kTile) & 1);
    keys[i] = make_longlong2(mark, mark);
    if (scores != nullptr) scores[i] = make_longlong2(0, 0);
  }
}

// REQUIRES: first_slot and num_slots are multiples of kBucketSlots.
template <Eviction kEviction>
__global__ void __launch_bounds__(kBlock)
    ExportKernel(TableView view, int64_t first_slot, int64_t num_slots,
                 ExportedKeys out) {
  __shared__ int total;
  __shared__ unsigned long long base;
  constexpr int kPerThread = 8;  // one reservation in the list per 2048 slots
  const int lane = threadIdx.x & (kWarp - 1);
  const int64_t block_first =
      first_slot + static_cast<int64_t>(blockIdx.x) * kBlock * kPerThread;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  int64_t keys[kPerThread];
  int place[kPerThread];
  unsigned live = 0;
#pragma unroll
  for (int u = 0; u < kPerThread; ++u) {
    const int64_t slot = block_first + u * kBlock + threadIdx.x;
    const bool inside = slot < first_slot + num_slots;
    keys[u] = inside ? __ldcs(view.keys + slot) : 0;
    const uint32_t parity = (slot / kBucketSlots) & 1;
    if (inside && keys[u] != EmptyMark(parity) &&
        keys[u] != ErasedMark(parity)) {
      live |= 1u << u;
    }
  }
#pragma unroll
  for (int u = 0; u < kPerThread; ++u) {
    const bool mine = (live >> u) & 1;
    const unsigned mask = __ballot_sync(kAllLanes, mine);
    int warp_base = 0;
    if (lane == 0 && mask != 0) warp_base = atomicAdd(&total, __popc(mask));
    warp_base = __shfl_sync(kAllLanes, warp_base, 0);
    place[u] = warp_base + __popc(mask & ((1u << lane) - 1));
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    base = atomicAdd(reinterpret_cast<unsigned long long*>(out.count),
                     static_cast<unsigned long long>(total));
  }
  __syncthreads();
#pragma unroll
  for (int u = 0; u < kPerThread; ++u) {
    if (((live >> u) & 1) == 0) continue;
    const int64_t slot = block_first + u * kBlock + threadIdx.x;
    const int64_t at = static_cast<int64_t>(base) + place[u];
    out.keys[at] = keys[u];
    if (out.slots != nullptr) out.slots[at] = slot;
    if (kEviction != Eviction::kNone && out.scores != nullptr) {
      const uint64_t score = view.scores[slot];
      out.scores[at] =
          kEviction == Eviction::kLru ? score >> kLruCallShift : score;
    }
  }
}

__global__ void ZeroKernel(int64_t* count) { *count = 0; }

}  // namespace

Status LaunchErase(const Batch& batch, Eviction eviction, int64_t* slots,
                   int64_t* size_counters, cudaStream_t stream) {
  // A free slot must have a use count of zero; its time of last use may be any
  // value.
  const bool zero = eviction == Eviction::kLfu;
  const auto kernel =
      batch.num_tables == 1
          ? (zero ? EraseKernel<true, true> : EraseKernel<true, false>)
          : (zero ? EraseKernel<false, true> : EraseKernel<false, false>);
  kernel<<<BlocksFor(batch.num_keys), kBlock, 0, stream>>>(batch, slots,
                                                           size_counters);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("EraseKernel");
  return Status::OK();
}

Status LaunchClear(const TableView& view, cudaStream_t stream) {
  const int64_t pieces =
      static_cast<int64_t>(view.num_pairs) * kBucketSlots;  // of two slots
  const unsigned all = BlocksFor(pieces);
  const unsigned blocks = all < 16384u ? all : 16384u;
  ClearKernel<<<blocks, kBlock, 0, stream>>>(view, pieces);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("ClearKernel");
  return Status::OK();
}

Status LaunchExport(const TableView& view, int64_t first_slot,
                    int64_t num_slots, Eviction eviction,
                    const ExportedKeys& out, cudaStream_t stream) {
  ZeroKernel<<<1, 1, 0, stream>>>(out.count);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("ZeroKernel");
  if (num_slots == 0) return Status::OK();
  const unsigned blocks = BlocksFor((num_slots + 7) / 8);
  switch (eviction) {
    case Eviction::kNone:
      ExportKernel<Eviction::kNone>
          <<<blocks, kBlock, 0, stream>>>(view, first_slot, num_slots, out);
      break;
    case Eviction::kLru:
      ExportKernel<Eviction::kLru>
          <<<blocks, kBlock, 0, stream>>>(view, first_slot, num_slots, out);
      break;
    case Eviction::kLfu:
      ExportKernel<Eviction::kLfu>
          <<<blocks, kBlock, 0, stream>>>(view, first_slot, num_slots, out);
      break;
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("ExportKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/gpu_resident/step/insert_absent.h"
#include "kernels/engine/gpu_resident/table/bucket.h"
#include "kernels/engine/gpu_resident/table/claim.cuh"
#include "kernels/engine/gpu_resident/table/table_set.h"
#include "kernels/engine/gpu_step/step_plan.cuh"

namespace ev {
namespace gpu {
namespace {

// The walk of a never-evicting find-or-insert, over a list whose length the
// device knows. A key is in it as often as it occurs; one of its occurrences
// inserts it, the others find it.
__global__ void __launch_bounds__(kStepBlock)
    InsertAbsentKernel(StepPlan plan, DeviceTables tables) {
  const int64_t n = plan.counts->absent;
  const int lane = threadIdx.x & (kWarp - 1);
  const int64_t warp =
      (static_cast<int64_t>(blockIdx.x) * kStepBlock + threadIdx.x) / kWarp;
  const int64_t warps = static_cast<int64_t>(gridDim.x) * kStepBlock / kWarp;
  for (int64_t base = warp * kWarp; base < n; base += warps * kWarp) {
    const bool mine = base + lane < n;
    uint2 entry = make_uint2(0, 0);
    if (mine) entry = plan.absent[base + lane];
    const int64_t key = mine ? plan.ids[entry.x] : 0;
    const TableView view = tables.views[entry.y];
    const uint64_t hash = MixKey(key);
    Chain chain(hash, view);
    bool wanted = mine, inserted = false;
    int64_t slot = -1, free_first = -1;
    uint32_t free = 0, probes = 0;
    while (__any_sync(kAllLanes, wanted)) {
      const int64_t first = wanted ? chain.first_slot() : 0;
      const Seen seen = ProbeWarp<Slots::kLive, Want::kFreeToo>(
          view.keys + first, key, wanted);
      if (!wanted) continue;
      if (seen.match != 0) {
        slot = first + SlotOfBit(__ffs(seen.match) - 1);
        wanted = false;
        continue;
      }
      if (free_first < 0 && seen.free != 0) {
        free_first = first;
        free = seen.free;
      }
      ++probes;
      if (!seen.empty && probes < view.probe_limit) {
        chain.Next();
        continue;
      }
      if (free_first < 0) {
        wanted = false;
        continue;
      }
      const int at = ClaimSlot(view.keys + free_first, key, chain.parity(),
                               free, &inserted);
      if (at >= 0) {
        slot = free_first + at;
        wanted = false;
      } else {
        chain = Chain(hash, view);
        free_first = -1;
        probes = 0;
      }
    }
    if (mine) {
      const uint32_t row = slot < 0 ? kNoRow : static_cast<uint32_t>(slot);
      plan.rows[entry.x] = inserted ? row | kFreshRow : row;
    }
    const int table = static_cast<int>(entry.y);
    CountInWarp(tables.size_counters, table, inserted, blockIdx.x);
    CountInWarp(tables.rejected_counters, table, mine && slot < 0, blockIdx.x);
  }
}

}  // namespace

Status LaunchInsertAbsent(const StepPlan& plan, const DeviceTables& tables,
                          int num_processors, StreamView stream) {
  InsertAbsentKernel<<<2 * num_processors, kStepBlock, 0, stream.get()>>>(
      plan, tables);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("InsertAbsentKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

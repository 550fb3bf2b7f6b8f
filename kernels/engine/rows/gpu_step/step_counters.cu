// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Each row is updated by one thread, so no atomics are needed. Per row, 4 bytes
// are read and 16 are written, at a random address.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/row_meta.h"
#include "kernels/engine/rows/gpu/row_counters.h"
#include "kernels/engine/rows/gpu_step/step_counters.h"
#include "kernels/engine/rows/gpu_step/step_keys.cuh"

namespace ev {
namespace gpu {
namespace {

constexpr int kBlocksEach = 8;  // per multiprocessor

// Same layout as RowMeta, but written by one 16-byte store.
struct alignas(16) Counters {
  uint64_t version_plus1;
  uint32_t frequency;
  uint32_t call;
};
static_assert(sizeof(Counters) == sizeof(RowMeta), "it is one");

__device__ __forceinline__ Counters* CountersOf(const StepTable& table,
                                                uint32_t row) {
  const uint32_t within = row & ((1u << kCounterRowsLog2) - 1);
  return reinterpret_cast<Counters*>(table.counters[row >> kCounterRowsLog2]) +
         within;
}

__global__ void __launch_bounds__(kStepBlock) CountersKernel(StepPlan plan) {
  VisitKeys(
      plan, [](const StepTable& table) { return table.counters != nullptr; },
      [](const StepTable& table, uint32_t row, uint32_t occurrences, bool has) {
        if (!has) return;
        Counters* const at = CountersOf(table, row);
        const uint32_t before = at->frequency;
        Counters after;
        after.version_plus1 = table.counted_version_plus1;
        // Saturates, like AddToMeta.
        after.frequency = before > UINT32_MAX - occurrences
                              ? UINT32_MAX
                              : before + occurrences;
        after.call = table.counted_call;
        *at = after;
      });
}

}  // namespace

Status LaunchCounters(const StepPlan& plan, int num_processors,
                      StreamView stream) {
  CountersKernel<<<kBlocksEach * num_processors, kStepBlock, 0, stream.get()>>>(
      plan);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("CountersKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

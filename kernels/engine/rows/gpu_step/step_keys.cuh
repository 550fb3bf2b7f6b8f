// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Visits the distinct keys of a step whose occurrences have been grouped, with
// the number of occurrences that the ids of each key stand for.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_STEP_KEYS_CUH_
#define KERNELS_ENGINE_ROWS_GPU_STEP_STEP_KEYS_CUH_

#include <cstdint>

#include "kernels/engine/base/gpu/warp.cuh"
#include "kernels/engine/gpu_step/step_plan.cuh"
#include "kernels/engine/ids/occurrences.h"

namespace ev {
namespace gpu {

// Returns the number of occurrences of a key with few ids. If ids stand for
// several occurrences, each sample is one id, so a sample's number is an id's.
__device__ __forceinline__ uint32_t OccurrencesOf(const StepPlan& plan,
                                                  const StepTable& table,
                                                  const SmallKey& key) {
  const uint32_t num_ids = key.table_and_count & 0xFF;
  const int32_t* const of_ids = table.occurrences;
  if (of_ids == nullptr || num_ids == 0) return num_ids;
  int64_t sum = of_ids[num_ids <= 2 ? key.a : plan.sorted[key.a]];
  if (num_ids == 2) sum += of_ids[key.b];
  for (uint32_t k = 1; k < num_ids && num_ids > 2; ++k) {
    sum += of_ids[plan.sorted[key.a + k]];
  }
  return static_cast<uint32_t>(min(sum, kMostOccurrences));
}
// The same for a key with many ids.
__device__ __forceinline__ uint32_t OccurrencesOf(const StepPlan& plan,
                                                  const StepTable& table,
                                                  const LongKey& key) {
  if (table.occurrences == nullptr) return key.count;
  int64_t sum = 0;
  for (uint32_t k = 0; k < key.count; ++k) {
    sum += table.occurrences[plan.order[key.start + k]];
  }
  return static_cast<uint32_t>(min(sum, kMostOccurrences));
}

// Calls visit(table, row, occurrences, has) for each key of the tables that the
// predicate selects. All lanes of a warp call it together; 'has' is false in
// lanes without such a key, whose other arguments are unspecified. REQUIRES:
// blocks have kStepBlock threads.
template <typename Wants, typename Visit>
__device__ __forceinline__ void VisitKeys(const StepPlan& plan,
                                          const Wants& wants,
                                          const Visit& visit) {
  const unsigned first = blockIdx.x * kStepBlock + threadIdx.x;
  const unsigned stride = gridDim.x * kStepBlock;
  const unsigned lane = threadIdx.x & (kWarp - 1);
  for (int c = 0; c < kClasses; ++c) {
    const SmallKey* const small = plan.small + plan.id_base[c];
    const unsigned num_small = plan.counts->of[c].small;
    for (unsigned k = first; k - lane < num_small; k += stride) {
      const SmallKey key = k < num_small ? small[k] : SmallKey{};
      const StepTable& table = plan.tables[key.table_and_count >> 8];
      const bool has = k < num_small && wants(table);
      visit(table, key.row, has ? OccurrencesOf(plan, table, key) : 0, has);
    }
    const LongKey* const longs = plan.longs + plan.long_base[c];
    const unsigned num_long = plan.counts->of[c].longs;
    for (unsigned k = first; k - lane < num_long; k += stride) {
      const LongKey key = k < num_long ? longs[k] : LongKey{};
      const StepTable& table = plan.tables[key.table];
      const bool has = k < num_long && wants(table);
      visit(table, key.row, has ? OccurrencesOf(plan, table, key) : 0, has);
    }
  }
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_STEP_KEYS_CUH_

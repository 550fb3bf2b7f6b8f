// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The part of a plan that needs no rows: samples and distinct ids.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_PLAN_BUILDER_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_PLAN_BUILDER_H_

#include <cstdint>
#include <functional>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/lookup/device_lookup.h"
#include "kernels/engine/embedding/lookup/lookup_plan.h"
#include "kernels/engine/embedding/lookup/planned_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"

namespace ev {

// Ids of one task: at 30 to 60 ns each, about 100 us. A table of fewer goes
// through all steps in one task, which finds everything in its own cache.
constexpr int64_t kIdsPerTask = 2048;

// What one table's batch costs, in ids.
inline int64_t PlanWeight(const PooledInput& in) {
  return in.num_ids + in.batch_size / 4;
}

enum class Samples {
  kAsGiven,    // by row splits or indices, which are checked
  kOneIdEach,  // sample i is id i; batch_size == num_ids
};

// Whether one task goes through all steps of the table, calling small_done.
inline bool IsSmall(const PooledInput& in, const PlannedTable& planned) {
  return planned.distinct == nullptr && PlanWeight(in) <= kIdsPerTask;
}

// Whether a device is to deduplicate the ids, if it has memory for that.
bool IsDeduplicatedByDevice(const PooledInput& in);

// Fills table t of the plan from inputs[t], for all t: sizes, offsets, distinct
// keys, inverse, counts, and a copy of the weights. small_done(t) is called for
// each small table, in the task that did it, as soon as this is known. Where a
// device deduplicates, which it does not without 'devices', planned->distinct
// is set and started, 'devices' is told, and let advance now and then.
// REQUIRES: the inputs' sizes were checked, their tables' gates are held, the
// plan has as many tables. Throws std::bad_alloc.
Status PlanIds(Span<const PooledInput> inputs, Samples samples,
               LookupPlan* plan, DeviceLookup* devices, Parallel* parallel,
               const std::function<Status(int t)>& small_done);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_PLAN_BUILDER_H_

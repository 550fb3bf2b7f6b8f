// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Builds the part of a lookup's plan that needs no rows: samples and distinct
// ids (ids/batch_ids.h), on the CPU or on the devices that have the rows.

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
#include "kernels/engine/ids/batch_ids.h"

namespace ev {

// Ids per task: at 30 to 60 ns each, about 100 us. A smaller table goes through
// all steps in one task, which finds everything in its core's cache.
constexpr int64_t kIdsPerTask = 2048;

// Returns whether one task goes through all steps of the table and calls
// small_done.
inline bool IsSmall(const PlannedTable& planned) {
  return IsSmall(planned, kIdsPerTask);
}

// Returns whether a device should deduplicate the ids, if it has the memory.
bool IsDeduplicatedByDevice(const PooledInput& in);

// Plans the ids inputs[t] of table t of the plan, for all t. small_done(t) is
// called for each small table, in the task that planned it, as soon as its keys
// are planned. If a device deduplicates a table, planned->distinct is set and
// started, and 'devices' takes the table. If 'devices' is null, no device does.
// REQUIRES: the inputs' sizes were checked, their tables' gates are held, the
// plan has as many tables. Throws std::bad_alloc.
Status PlanLookup(Span<const PooledInput> inputs, Samples samples,
                  LookupPlan* plan, DeviceLookup* devices, Parallel* parallel,
                  const std::function<Status(int t)>& small_done);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_PLAN_BUILDER_H_

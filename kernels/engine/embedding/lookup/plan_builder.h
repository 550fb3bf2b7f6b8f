// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Builds the part of a lookup's plan that needs no rows: samples and distinct
// ids (ids/batch_ids.h). The ids of a step are copied to its GPU instead.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_PLAN_BUILDER_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_PLAN_BUILDER_H_

#include <cstdint>
#include <functional>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/lookup/lookup_plan.h"
#include "kernels/engine/embedding/lookup/planned_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/lookup/step_lookup.h"
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

// Plans the ids inputs[t] of table t of the plan, for all t. small_done(t) is
// called for each small table, in the task that planned it, as soon as its keys
// are planned. For the tables of 'step', planned->distinct is set, and the ids
// are copied to the GPU and looked up. 'step' may be null. REQUIRES: the
// inputs' sizes were checked, their tables' gates are held, the plan has as
// many tables. Throws std::bad_alloc.
Status PlanLookup(Span<const PooledInput> inputs, Samples samples,
                  LookupPlan* plan, StepLookup* step, Parallel* parallel,
                  const std::function<Status(int t)>& small_done);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_PLAN_BUILDER_H_

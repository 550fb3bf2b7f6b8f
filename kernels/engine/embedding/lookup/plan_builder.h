// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Builds the part of a lookup's plan that needs no rows: samples and distinct
// ids (ids/batch_ids.h). The ids of a step are copied to its GPU instead.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_PLAN_BUILDER_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_PLAN_BUILDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

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

// Sets *impls to the tables of a lookup's inputs (PooledInput or RowsInput).
// InvalidArgument: an input has no table, or 'owners' are not the tables.
template <typename Input>
Status TablesOf(Span<const Input> inputs,
                const std::vector<std::shared_ptr<EmbeddingTable>>& owners,
                std::vector<EmbeddingTable::Impl*>* impls) {
  if (!owners.empty() && owners.size() != inputs.size()) {
    return InvalidArgument("a lookup of " + std::to_string(inputs.size()) +
                           " tables got " + std::to_string(owners.size()) +
                           " owners");
  }
  for (size_t t = 0; t < inputs.size(); ++t) {
    if (inputs[t].table == nullptr ||
        (!owners.empty() && owners[t].get() != inputs[t].table)) {
      return InvalidArgument("lookup " + std::to_string(t) +
                             " has no table, or its owner is another table");
    }
    impls->push_back(inputs[t].table->impl());
  }
  return Status::OK();
}

// Plans the ids inputs[t] of table t of the plan, for all t. small_done(t) is
// called for each small table, in the task that planned it, as soon as its keys
// are planned. The ids of the tables that 'step' has are copied to the GPU,
// looked up and pooled. 'step' may be null. REQUIRES: the
// inputs' sizes were checked, their table locks are held, the plan has as
// many tables. Throws std::bad_alloc.
Status PlanLookup(Span<const PooledInput> inputs, Samples samples,
                  LookupPlan* plan, StepLookup* step, Parallel* parallel,
                  const std::function<Status(int t)>& small_done);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_PLAN_BUILDER_H_

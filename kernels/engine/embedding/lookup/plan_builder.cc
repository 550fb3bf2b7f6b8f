// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/plan_builder.h"

#include <vector>

#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/ids/distinct_queue.h"

namespace ev {
namespace {

// Sets the sizes of one table's part and reserves its memory.
void Prepare(const PooledInput& in, int t, const StepLookup* step,
             PlannedTable* planned) {
  const EmbeddingTable::Impl& table = *in.table->impl();
  planned->Begin(in, table.options.name);
  planned->table = in.table;
  planned->combiner = in.combiner;
  planned->no_nan = in.no_nan;
  planned->dim = table.dim();
  planned->num_absent = 0;
  planned->generation = table.generation;
  if (step != nullptr && step->Has(t)) planned->distinct = step->Distinct(t);
  planned->Reserve(planned->distinct == nullptr ? in.num_ids : 0);
}

}  // namespace

Status PlanLookup(Span<const PooledInput> inputs, Samples samples,
                  LookupPlan* plan, StepLookup* step, Parallel* parallel,
                  const std::function<Status(int t)>& small_done) {
  const int num_tables = static_cast<int>(inputs.size());
  std::vector<const IdsInput*> ids(num_tables);
  std::vector<TableIds*> tables(num_tables);
  for (int t = 0; t < num_tables; ++t) {
    PlannedTable* const planned = plan->mutable_planned(t);
    Prepare(inputs[t], t, step, planned);
    ids[t] = &inputs[t];
    tables[t] = planned;
  }
  PlanIdsOptions options;
  options.samples = samples;
  options.ids_per_task = kIdsPerTask;
  options.check = [&](int t) {
    const PooledInput& in = inputs[t];
    if (in.ids64 == nullptr || in.on_device) return Status::OK();
    return in.table->impl()->CheckKeys(
        Span<const int64_t>(in.ids64, in.num_ids));
  };
  options.keys_known = [&](int t, Parallel*) {
    return IsSmall(plan->planned(t)) ? small_done(t) : Status::OK();
  };
  DistinctQueue queue(tables, [&](int t) {
    plan->mutable_planned(t)->TakeDistinct();
    return inputs[t].table->impl()->WithName(step->Waited());
  });
  EV_RETURN_IF_ERROR(PlanIds(ids, tables, options, &queue, parallel));
  return queue.Finish(parallel);
}

}  // namespace ev

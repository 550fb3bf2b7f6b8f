// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/plan_builder.h"

#include <vector>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/table_impl.h"

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
  planned->step_finds_rows = step != nullptr && step->Has(t);
  planned->Reserve(planned->step_finds_rows ? 0 : in.num_ids);
  if (planned->step_finds_rows) {
    planned->BeginStep(step->step(t), step->number(t));
  }
}

}  // namespace

Status PlanLookup(Span<const PooledInput> inputs, Samples samples,
                  LookupPlan* plan, StepLookup* step, Parallel* parallel,
                  const std::function<Status(int t)>& small_done) {
  // Tables that the CPU plans.
  std::vector<int> on_cpu;
  std::vector<const IdsInput*> ids;
  std::vector<TableIds*> tables;
  for (int t = 0; t < static_cast<int>(inputs.size()); ++t) {
    PlannedTable* const planned = plan->mutable_planned(t);
    Prepare(inputs[t], t, step, planned);
    if (planned->step_finds_rows) continue;
    on_cpu.push_back(t);
    ids.push_back(&inputs[t]);
    tables.push_back(planned);
  }
  TaskList of_steps(kIdsPerTask);
  PlanIdsOptions options;
  options.samples = samples;
  options.ids_per_task = kIdsPerTask;
  options.check = [&](int k) {
    const PooledInput& in = inputs[on_cpu[k]];
    if (in.ids64 == nullptr) return Status::OK();
    return in.table->impl()->CheckKeys(
        Span<const int64_t>(in.ids64, in.num_ids));
  };
  options.keys_known = [&](int k, Parallel*) {
    return IsSmall(plan->planned(on_cpu[k])) ? small_done(on_cpu[k])
                                             : Status::OK();
  };
  if (step != nullptr) {
    step->AddTasks(samples, plan, &of_steps);
    options.other = &of_steps;
    options.do_other = [&](const Piece& piece) { return step->DoTask(piece); };
  }
  EV_RETURN_IF_ERROR(PlanIds(ids, tables, options, nullptr, parallel));
  return step == nullptr ? Status::OK() : step->Pool();
}

}  // namespace ev

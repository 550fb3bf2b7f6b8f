// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/lookup_plan.h"

#include <algorithm>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/combine/pooling_gradient.h"
#include "kernels/engine/embedding/lookup/planned_table.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/ids/batch_ids.h"
#include "kernels/engine/ids/recycled_plan.h"

namespace ev {
LookupPlan::LookupPlan() {}
LookupPlan::~LookupPlan() {}

EmbeddingTable* LookupPlan::table(int t) const { return tables_[t]->table; }
int64_t LookupPlan::batch_size(int t) const { return tables_[t]->batch_size; }
int64_t LookupPlan::num_ids(int t) const { return tables_[t]->num_ids; }

bool LookupPlan::sums_on_cpu(int t) const {
  return Selects(tables_[t]->combiner);
}

Status PlannedTable::BringIds(Parallel* parallel) {
  ArrayLayout layout;
  const size_t ids_at = layout.Add<int64_t>(num_ids);
  const size_t unique_at = layout.Add<int64_t>(num_ids);
  const size_t inverse_at = layout.Add<int32_t>(num_ids);
  const size_t counts_at = layout.Add<int32_t>(num_ids);
  const size_t of_ids_at = layout.Add<RowHandle>(num_ids);
  const size_t handles_at = layout.Add<RowHandle>(num_ids);
  char* const base = static_cast<char*>(brought.Reserve(layout.bytes()));
  GpuStepIds from_step;
  from_step.ids = reinterpret_cast<int64_t*>(base + ids_at);
  from_step.offsets = offsets;
  from_step.handles = reinterpret_cast<RowHandle*>(base + of_ids_at);
  EV_RETURN_IF_ERROR(step->BringIds(step_number, &from_step));
  has_offsets = true;
  unique = reinterpret_cast<int64_t*>(base + unique_at);
  inverse = reinterpret_cast<int32_t*>(base + inverse_at);
  counts = reinterpret_cast<int32_t*>(base + counts_at);
  handles = reinterpret_cast<RowHandle*>(base + handles_at);
  IdsInput in;
  in.num_ids = num_ids;
  in.ids64 = from_step.ids;
  EV_RETURN_IF_ERROR(FindDistinct(in, parallel, this));
  for (int64_t i = 0; i < num_ids; ++i) {
    handles[inverse[i]] = from_step.handles[i];
  }
  if (from_step.occurrences != nullptr) {
    SumOccurrences(from_step.occurrences, inverse);
  }
  return Status::OK();
}

Status LookupPlan::SettleLocked(PlannedTable* planned) const {
  if (planned->is_settled) return Status::OK();
  EV_RETURN_IF_ERROR(planned->table->impl()->WithName(
      planned->step->Settle(planned->step_number, &planned->unknown)));
  // No unknown key of a step has a row.
  const int64_t num_absent = planned->unknown.keys.size();
  planned->unknown_handles =
      planned->key_arrays.ReserveOf<RowHandle>(num_absent);
  std::fill_n(planned->unknown_handles, num_absent, kNoRow);
  planned->num_absent = num_absent;
  planned->is_settled = true;
  return Status::OK();
}

Status LookupPlan::Settle(int t) const {
  PlannedTable* const planned = tables_[t].get();
  if (!planned->step_finds_rows) return Status::OK();
  std::lock_guard<std::mutex> lock(planned->fetch);
  return SettleLocked(planned);
}

Status LookupPlan::FetchOne(int t, Parallel* parallel) const {
  PlannedTable* const planned = tables_[t].get();
  if (!planned->step_finds_rows) return Status::OK();
  std::lock_guard<std::mutex> lock(planned->fetch);
  if (planned->is_fetched) return Status::OK();
  EV_RETURN_IF_ERROR(SettleLocked(planned));
  EV_RETURN_IF_ERROR(planned->table->impl()->WithName(
      CatchBadAlloc([&] { return planned->BringIds(parallel); })));
  if (SampleFactors(planned->combiner, planned->offsets, nullptr,
                    planned->no_nan, 0, planned->batch_size,
                    planned->factors)) {
    planned->has_factors.store(true, std::memory_order_relaxed);
  }
  planned->is_fetched = true;
  return Status::OK();
}

Status LookupPlan::Fetch(Span<const int> tables, Parallel* parallel) const {
  return CatchBadAlloc([&] {
    std::vector<int> small;
    for (int t : tables) {
      const PlannedTable& planned = *tables_[t];
      if (!planned.step_finds_rows) continue;
      if (planned.num_ids <= ShardedIds::kMaxWhole) {
        small.push_back(t);
      } else {  // all threads share its ids
        EV_RETURN_IF_ERROR(FetchOne(t, parallel));
      }
    }
    return RunTasksWithStatus(
        parallel, static_cast<int64_t>(small.size()),
        [&](int64_t k) { return FetchOne(small[k], nullptr); });
  });
}

Status LookupPlan::UniqueKeys(int t, Span<const int64_t>* keys,
                              Span<const int32_t>* counts) const {
  EV_RETURN_IF_ERROR(FetchOne(t, nullptr));
  const PlannedTable& planned = *tables_[t];
  *keys = Span<const int64_t>(planned.unique, planned.num_unique);
  if (counts == nullptr) return Status::OK();
  *counts = Span<const int32_t>(
      planned.occurrences != nullptr ? planned.occurrences : planned.counts,
      planned.num_unique);
  return Status::OK();
}

size_t LookupPlan::bytes() const {
  size_t bytes = 0;
  for (const auto& table : tables_) bytes += table->bytes();
  return bytes;
}

void LookupPlan::GiveBack() {
  for (const auto& table : tables_) {
    table->step.reset();
    table->owner.reset();
    table->table = nullptr;
  }
}

std::shared_ptr<LookupPlan> LookupPlan::Make(int num_tables) {
  const std::shared_ptr<LookupPlan> plan = RecycledPlan<LookupPlan>();
  while (plan->tables_.size() < static_cast<size_t>(num_tables)) {
    plan->tables_.push_back(std::make_unique<PlannedTable>());
  }
  plan->num_tables_ = num_tables;
  return plan;
}

}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/lookup_plan.h"

#include <algorithm>

#include "kernels/engine/combine/pooling_gradient.h"
#include "kernels/engine/embedding/lookup/planned_table.h"
#include "kernels/engine/embedding/table_impl.h"
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

Status LookupPlan::SettleLocked(PlannedTable* planned) const {
  if (planned->distinct->is_settled()) return Status::OK();
  EV_RETURN_IF_ERROR(
      planned->table->impl()->WithName(planned->distinct->Settle()));
  planned->TakeUnknown();
  // No unknown key of a step has a row.
  const int64_t num_absent = planned->distinct->num_unknown();
  std::fill_n(planned->unknown_handles, num_absent, kNoRow);
  planned->num_absent = num_absent;
  return Status::OK();
}

Status LookupPlan::Settle(int t) const {
  PlannedTable* const planned = tables_[t].get();
  if (planned->distinct == nullptr) return Status::OK();
  std::lock_guard<std::mutex> lock(planned->fetch);
  return SettleLocked(planned);
}

Status LookupPlan::Fetch(int t) const {
  PlannedTable* const planned = tables_[t].get();
  if (planned->distinct == nullptr) return Status::OK();
  std::lock_guard<std::mutex> lock(planned->fetch);
  if (planned->is_fetched) return Status::OK();
  EV_RETURN_IF_ERROR(SettleLocked(planned));
  EV_RETURN_IF_ERROR(
      planned->table->impl()->WithName(planned->distinct->Fetch()));
  if (!planned->has_offsets) {
    EV_RETURN_IF_ERROR(planned->table->impl()->WithName(
        planned->distinct->Samples(planned->offsets)));
    planned->has_offsets = true;
  }
  if (SampleFactors(planned->combiner, planned->offsets, nullptr,
                    planned->no_nan, 0, planned->batch_size,
                    planned->factors)) {
    planned->has_factors.store(true, std::memory_order_relaxed);
  }
  planned->TakeFetched();
  if (const int32_t* const of_ids = planned->distinct->occurrences_of_ids()) {
    std::vector<int32_t> inverse(planned->num_ids);
    EV_RETURN_IF_ERROR(planned->table->impl()->WithName(
        planned->distinct->Inverse(inverse.data(), nullptr)));
    planned->SumOccurrences(of_ids, inverse.data());
  }
  planned->is_fetched = true;
  return Status::OK();
}

Status LookupPlan::UniqueKeys(int t, Span<const int64_t>* keys,
                              Span<const int32_t>* counts) const {
  EV_RETURN_IF_ERROR(Fetch(t));
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
    table->distinct.reset();
    table->named_step.reset();
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

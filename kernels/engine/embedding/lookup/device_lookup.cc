// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/device_lookup.h"

#include <cstdint>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/lookup/plan_builder.h"
#include "kernels/engine/embedding/lookup/planned_table.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/rows/gpu_compute.h"

namespace ev {
namespace {

// Maximum number of unknown keys that the thread that takes their table finds
// alone, at some 30 ns each. More are split among threads when all tables have
// been waited for.
constexpr int64_t kMostFoundAlone = 4 * kIdsPerTask;

// Finds the rows of unknown keys [begin, end), and sets the handles that the
// device reads for them.
void FindUnknown(PlannedTable* planned, int64_t begin, int64_t end) {
  const EmbeddingTable::Impl& table = *planned->table->impl();
  const int64_t* const keys = planned->distinct->unknown_keys();
  table.index.Find(Span<const int64_t>(keys + begin, end - begin),
                   planned->unknown_handles + begin);
  int64_t absent = 0;
  for (int64_t k = begin; k < end; ++k) {
    const RowHandle handle = planned->unknown_handles[k];
    const bool has_row = handle < kFirstReservedHandle;
    planned->device_rows[k] = has_row ? handle : table.AbsentOnGpu(keys[k]);
    absent += !has_row;
  }
  if (absent != 0) {
    planned->num_absent.fetch_add(absent, std::memory_order_relaxed);
  }
}

std::vector<TableIds*> TablesOf(LookupPlan* plan) {
  std::vector<TableIds*> tables;
  for (int t = 0; t < plan->num_tables(); ++t) {
    tables.push_back(plan->mutable_planned(t));
  }
  return tables;
}

}  // namespace

DeviceLookup::DeviceLookup(LookupPlan* plan, StepLookup* step,
                           const std::function<Status(int t)>& all_known)
    : plan_(plan),
      step_(step),
      all_known_(all_known),
      to_find_(plan->num_tables()),
      queue_(TablesOf(plan), [this](int t) { return Take(t); }) {
  for (auto& keys : to_find_) keys = 0;
}

Status DeviceLookup::SetUnknown(int t) {
  const PlannedTable& planned = plan_->planned(t);
  const EmbeddingTable::Impl& table = *planned.table->impl();
  const Span<const RowHandle> handles(planned.device_rows,
                                      planned.distinct->num_unknown());
  if (IsInStep(t)) {
    return table.WithName(step_->SetUnknown(t, handles));
  }
  if (!handles.empty()) {
    EV_RETURN_IF_ERROR(
        table.WithName(table.home->gpu_table()->SetUnknownHandles(
            handles, planned.distinct.get())));
  }
  return all_known_(t);
}

Status DeviceLookup::Take(int t) {
  PlannedTable* const planned = plan_->mutable_planned(t);
  planned->TakeDistinct();
  const int64_t num_unknown = planned->distinct->num_unknown();
  if (num_unknown > kMostFoundAlone) {
    to_find_[t] = num_unknown;
    return Status::OK();
  }
  FindUnknown(planned, 0, num_unknown);
  return SetUnknown(t);
}

Status DeviceLookup::Finish(Parallel* parallel) {
  EV_RETURN_IF_ERROR(queue_.Finish(parallel));
  TaskList rest(kIdsPerTask);
  for (int t = 0; t < plan_->num_tables(); ++t) rest.Add(t, to_find_[t], 1);
  return RunPieces(parallel, rest, [&](const Piece& piece) {
    FindUnknown(plan_->mutable_planned(piece.item), piece.begin, piece.end);
    const int64_t found = piece.end - piece.begin;
    if (to_find_[piece.item].fetch_sub(found, std::memory_order_acq_rel) !=
        found) {
      return Status::OK();
    }
    return SetUnknown(piece.item);
  });
}

}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/device_lookup.h"

#include <atomic>
#include <cstdint>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/lookup/plan_builder.h"
#include "kernels/engine/embedding/lookup/planned_table.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/rows/gpu_compute.h"

namespace ev {
namespace {

// Unknown keys that are found by who waited for them, at some 30 ns each; more
// are shared out when all tables have been waited for.
constexpr int64_t kMostFoundAlone = 4 * kIdsPerTask;

// Tables whose devices are asked at a time whether they are through, at a few
// us each.
constexpr int kMostAsked = 3;

// Unknown keys [begin, end): where their rows are, and what the device is to
// call them.
void FindUnknown(PlannedTable* planned, int64_t begin, int64_t end) {
  const EmbeddingTable::Impl& table = *planned->table->impl();
  const int64_t* const keys = planned->distinct->unknown_keys();
  table.index.Find(Span<const int64_t>(keys + begin, end - begin),
                   planned->unknown_handles + begin);
  int64_t absent = 0;
  for (int64_t k = begin; k < end; ++k) {
    const RowHandle handle = planned->unknown_handles[k];
    const bool has_row = handle < kFirstReservedHandle;
    planned->on_device[k] = has_row ? handle : table.AbsentOnGpu(keys[k]);
    absent += !has_row;
  }
  if (absent != 0) {
    planned->num_absent.fetch_add(absent, std::memory_order_relaxed);
  }
}

}  // namespace

DeviceLookup::DeviceLookup(LookupPlan* plan,
                           const std::function<Status(int t)>& all_named)
    : plan_(plan),
      all_named_(all_named),
      states_(plan->num_tables()),
      to_find_(plan->num_tables()) {
  for (auto& state : states_) state = kNotStarted;
  for (auto& keys : to_find_) keys = 0;
}

Status DeviceLookup::NameAll(int t) {
  const PlannedTable& planned = plan_->planned(t);
  const EmbeddingTable::Impl& table = *planned.table->impl();
  const Span<const RowHandle> names(planned.on_device,
                                    planned.distinct->num_unknown());
  if (!names.empty()) {
    EV_RETURN_IF_ERROR(table.Named(
        table.home->gpu_table()->NameUnknown(names, planned.distinct.get())));
  }
  return all_named_(t);
}

Status DeviceLookup::Take(int t) {
  PlannedTable* const planned = plan_->mutable_planned(t);
  EV_RETURN_IF_ERROR(planned->table->impl()->Named(planned->distinct->Wait()));
  planned->TakeDistinct();
  const int64_t num_unknown = planned->distinct->num_unknown();
  if (num_unknown > kMostFoundAlone) {
    to_find_[t] = num_unknown;
    return Status::OK();
  }
  FindUnknown(planned, 0, num_unknown);
  return NameAll(t);
}

Status DeviceLookup::Advance() {
  const int num_tables = plan_->num_tables();
  // In the order of the tables, in which their ids were put; but one that is
  // late, since whoever started it was, keeps no other waiting.
  bool is_oldest = true;
  int asked = 0;
  for (int t = oldest_.load(std::memory_order_relaxed);
       t < num_tables && asked < kMostAsked; ++t) {
    State state = states_[t].load(std::memory_order_acquire);
    if (state == kTaken || plan_->planned(t).distinct == nullptr) continue;
    if (is_oldest) oldest_.store(t, std::memory_order_relaxed);
    is_oldest = false;
    if (state != kStarted) continue;
    ++asked;
    if (plan_->planned(t).distinct->IsDone() &&
        states_[t].compare_exchange_strong(state, kTaken)) {
      return Take(t);
    }
  }
  return Status::OK();
}

Status DeviceLookup::Finish(Parallel* parallel) {
  std::vector<int> waiting;
  for (int t = 0; t < plan_->num_tables(); ++t) {
    if (states_[t] == kStarted) waiting.push_back(t);
  }
  EV_RETURN_IF_ERROR(
      RunTasksWithStatus(parallel, static_cast<int64_t>(waiting.size()),
                         [&](int64_t i) { return Take(waiting[i]); }));
  TaskList rest(kIdsPerTask);
  for (int t = 0; t < plan_->num_tables(); ++t) rest.Add(t, to_find_[t], 1);
  return RunPieces(parallel, rest, [&](const Piece& piece) {
    FindUnknown(plan_->mutable_planned(piece.item), piece.begin, piece.end);
    const int64_t found = piece.end - piece.begin;
    if (to_find_[piece.item].fetch_sub(found, std::memory_order_acq_rel) !=
        found) {
      return Status::OK();
    }
    return NameAll(piece.item);
  });
}

}  // namespace ev

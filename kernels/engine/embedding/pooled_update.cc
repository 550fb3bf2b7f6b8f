// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/pooled_update.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "kernels/engine/embedding/device_rows.h"
#include "kernels/engine/embedding/grouped_occurrences.h"
#include "kernels/engine/embedding/tasks.h"

namespace ev {
namespace {

// Ids of one task: at some 5 ns each, about 50 us.
constexpr int64_t kIdsPerTask = 8192;

// grouped: null where the device has deduplicated, and groups by itself.
Status Start(const std::string& rule, Span<const float> hyper,
             const PooledUpdate& update, const Grouped* grouped,
             std::unique_ptr<DeviceWork>* work) {
  const PlannedTable& planned = *update.planned;
  const size_t num_unique = planned.num_unique, num_ids = planned.num_ids;
  DevicePooledUpdate to_do;
  to_do.rule = rule;
  to_do.hyper = hyper;
  to_do.handles = Span<const RowHandle>(update.handles, num_unique);
  to_do.slot_columns = update.slot_columns;
  to_do.distinct = planned.distinct.get();
  if (grouped != nullptr) {
    to_do.ends = Span<const int32_t>(grouped->ends, num_unique);
    to_do.samples = Span<const int32_t>(grouped->samples, num_ids);
  }
  to_do.num_samples = planned.batch_size;
  to_do.grads = update.grads;
  to_do.stream = update.stream;
  if (planned.has_weights) {
    to_do.weights = grouped->weights;
  } else if (FactorsOf(planned) != nullptr) {
    to_do.factors = Span<const float>(FactorsOf(planned), planned.batch_size);
  }
  return update.table->Named(
      update.table->device->StartPooledUpdate(to_do, work));
}

}  // namespace

Status ApplyPooledOnDevices(const std::string& rule, Span<const float> hyper,
                            const std::vector<PooledUpdate>& updates,
                            Parallel* parallel) {
  std::vector<Recycler<Grouped>::Handle> grouped;
  std::vector<Grouped*> grouped_of(updates.size(), nullptr);
  std::vector<std::atomic<int64_t>> to_group(updates.size());
  std::vector<std::unique_ptr<DeviceWork>> works(updates.size());
  TaskList group(kIdsPerTask);
  grouped.reserve(updates.size());
  for (size_t i = 0; i < updates.size(); ++i) {
    const PlannedTable& planned = *updates[i].planned;
    const int64_t parts = NumParts(planned);
    to_group[i] = parts;
    if (planned.distinct != nullptr) {
      // Gradients in ordinary memory are copied by who starts.
      group.Add(static_cast<int>(i), parts, kIdsPerTask);
      continue;
    }
    grouped.push_back(GroupedPool().Acquire());
    grouped_of[i] = &*grouped.back();
    grouped_of[i]->Reserve(planned);
    group.Add(static_cast<int>(i), parts,
              std::max<int64_t>(1, planned.num_ids / parts));
  }
  EV_RETURN_IF_ERROR(RunPieces(parallel, group, [&](const Piece& piece) {
    const int i = piece.item;
    const PooledUpdate& update = updates[i];
    if (grouped_of[i] != nullptr) {
      for (int64_t part = piece.begin; part < piece.end; ++part) {
        EV_RETURN_IF_ERROR(GroupPartOf(*update.planned, part, grouped_of[i]));
      }
    }
    // The last part of a table sends it off.
    const int64_t done = piece.end - piece.begin;
    if (to_group[i].fetch_sub(done, std::memory_order_acq_rel) != done) {
      return Status::OK();
    }
    if (update.is_solo) {
      return Start(rule, hyper, update, grouped_of[i], &works[i]);
    }
    // Others update the table too: the first stripe stands for all. Not held
    // beyond this, since they wait for each other's tables.
    std::lock_guard<std::mutex> lock(*update.table->update_lock.stripe(0));
    EV_RETURN_IF_ERROR(Start(rule, hyper, update, grouped_of[i], &works[i]));
    if (works[i] == nullptr) return Status::OK();
    // Gone before the lock is: rows stay written to for as long as it lives.
    const std::unique_ptr<DeviceWork> work = std::move(works[i]);
    return update.table->Named(work->Wait());
  }));
  for (size_t i = 0; i < updates.size(); ++i) {
    if (works[i] == nullptr) continue;
    EV_RETURN_IF_ERROR(updates[i].table->Named(works[i]->Wait()));
  }
  return Status::OK();
}

}  // namespace ev

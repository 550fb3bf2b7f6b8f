// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// End of step 3: records updates in the metadata of rows, and which rows have
// changed. If the updates of a step stayed on the device, the step returns the
// rows that it has updated, unless it counts them. For a table that other
// calls update too, rows are recorded under its first stripe, which stands for
// all.

#include <algorithm>
#include <mutex>
#include <vector>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/update/update_steps.h"
#include "kernels/engine/rows/gpu_step.h"

namespace ev {
namespace {

constexpr int64_t kRowsPerTask = 2048;
// Metadata of rows is anywhere in memory.
constexpr int64_t kAhead = 16;

// Rows that a step has updated, and the updates that they belong to.
struct StepRows {
  std::vector<const Update*> updates;  // by the table's number in the step
  GpuStepRows rows;
};

// Returns the round's updates of one step whose rows must be recorded.
std::vector<const Update*> UpdatesOf(const GpuStep* step,
                                     const std::vector<Update>& updates,
                                     int round) {
  std::vector<const Update*> by_number;
  for (const Update& update : updates) {
    if (update.round != round || !update.keys_stay_on_device ||
        !update.table->needs_meta_updates()) {
      continue;
    }
    if (update.planned->step.get() != step) continue;
    const size_t number = update.planned->step_number;
    if (by_number.size() <= number) by_number.resize(number + 1);
    by_number[number] = &update;
  }
  return by_number;
}

// Records rows [begin, end) of a step.
void UpdateStepMeta(const StepRows& step_rows, int64_t begin, int64_t end) {
  const GpuStepRows& rows = step_rows.rows;
  while (begin < end) {
    // Rows of a table come in runs of some hundred.
    const int32_t number = rows.numbers[begin];
    const Update& update = *step_rows.updates[number];
    std::unique_lock<std::mutex> lock;
    if (!update.solo) {
      lock = std::unique_lock<std::mutex>(*update.table->update_lock.stripe(0));
    }
    int64_t run = begin;
    while (run < end && rows.numbers[run] == number) ++run;
    Span<const RowHandle> handles = rows.rows.subspan(begin, run - begin);
    std::vector<RowHandle> of_table;
    if (update.table->rows_below() != nullptr) {
      of_table.resize(handles.size());
      update.table->home->gpu()->FindTableHandles(handles, of_table.data());
      handles = of_table;
    }
    for (size_t i = 0; begin < run; ++i, ++begin) {
      if (i + kAhead < handles.size()) {
        update.table->PrefetchMeta(handles[i + kAhead]);
      }
      update.table->AddToMeta(handles[i], rows.counts[begin], update.call);
    }
  }
}

}  // namespace

void UpdateMeta(const Update& update, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    if (update.handles[i] >= kFirstReservedHandle) continue;  // kept out
    update.table->AddToMeta(update.handles[i],
                            update.counts == nullptr ? 1 : update.counts[i],
                            update.call);
  }
}

Status UpdatePooledMeta(const std::vector<Update>& updates, int round,
                        Parallel* parallel) {
  TaskList tasks(kRowsPerTask);
  for (size_t i = 0; i < updates.size(); ++i) {
    const Update& update = updates[i];
    if (update.round == round && update.pooled_grads != nullptr &&
        !update.keys_stay_on_device && update.table->records_meta()) {
      tasks.Add(static_cast<int>(i), update.keys.size(), 1);
    }
  }
  return RunPieces(parallel, tasks, [&](const Piece& piece) {
    const Update& update = updates[piece.item];
    std::unique_lock<std::mutex> lock;
    if (!update.solo) {
      lock = std::unique_lock<std::mutex>(*update.table->update_lock.stripe(0));
    }
    UpdateMeta(update, piece.begin, piece.end);
    return Status::OK();
  });
}

Status UpdateMetaOfSteps(const std::vector<Update>& updates, int round,
                         const std::vector<StepMetaUpdates>& meta_updates,
                         Parallel* parallel) {
  TaskList tasks(kRowsPerTask);
  std::vector<StepRows> all(meta_updates.size());
  Status first_error;
  for (size_t k = 0; k < meta_updates.size(); ++k) {
    if (meta_updates[k].meta_updates == nullptr) continue;  // its update failed
    StepRows& step_rows = all[k];
    step_rows.updates = UpdatesOf(meta_updates[k].step, updates, round);
    const Update* const one =
        *std::find_if(step_rows.updates.begin(), step_rows.updates.end(),
                      [](const Update* update) { return update != nullptr; });
    const Status status = one->table->WithName(
        meta_updates[k].meta_updates->Wait(&step_rows.rows));
    if (first_error.ok()) first_error = status;
    if (!status.ok()) continue;
    tasks.Add(static_cast<int>(k), step_rows.rows.rows.size(), 1);
  }
  const Status status = RunPieces(parallel, tasks, [&](const Piece& piece) {
    UpdateStepMeta(all[piece.item], piece.begin, piece.end);
    return Status::OK();
  });
  return first_error.ok() ? status : first_error;
}

}  // namespace ev

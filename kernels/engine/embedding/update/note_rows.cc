// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Step 3, its end: what rows count about themselves, and which have changed.
// Where the updates of a step stayed on the device, it says which rows those
// were; a table that others update too is noted under its first stripe, which
// stands for all.

#include <algorithm>
#include <mutex>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/update/update_steps.h"
#include "kernels/engine/rows/gpu_step.h"

namespace ev {
namespace {

constexpr int64_t kRowsPerTask = 2048;
// What a row counts lies anywhere in memory.
constexpr int64_t kAhead = 16;

// One step's updates of a round that have something to note.
struct StepNotes {
  GpuStep* step = nullptr;
  std::vector<const Update*> updates;  // by the table's number in the step
  GpuStepRows rows;
};

// Of tables that note their rows.
std::vector<StepNotes> NotesOf(const std::vector<const Update*>& updates) {
  std::vector<StepNotes> all;
  for (const Update* update : updates) {
    GpuStep* const step = update->planned->distinct->step();
    size_t i = 0;
    while (i < all.size() && all[i].step != step) ++i;
    if (i == all.size()) {
      all.emplace_back();
      all[i].step = step;
    }
    const size_t number = update->planned->distinct->step_table();
    if (all[i].updates.size() <= number) all[i].updates.resize(number + 1);
    all[i].updates[number] = update;
  }
  return all;
}

// Rows [begin, end) of what the step has given.
void NoteStepRows(const StepNotes& notes, int64_t begin, int64_t end) {
  const GpuStepRows& rows = notes.rows;
  while (begin < end) {
    // Those of a table lie together in stretches of some hundred.
    const int32_t number = rows.numbers[begin];
    const Update& update = *notes.updates[number];
    std::unique_lock<std::mutex> lock;
    if (!update.solo) {
      lock = std::unique_lock<std::mutex>(*update.table->update_lock.stripe(0));
    }
    for (; begin < end && rows.numbers[begin] == number; ++begin) {
      const int64_t ahead = begin + kAhead;
      if (ahead < end && rows.numbers[ahead] == number) {
        update.table->PrefetchMeta(rows.rows[ahead]);
      }
      update.table->AddToMeta(rows.rows[begin], rows.counts[begin],
                              update.call);
    }
  }
}

}  // namespace

void NoteRows(const Update& update, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    if (update.handles[i] >= kFirstReservedHandle) continue;  // kept out
    update.table->AddToMeta(update.handles[i],
                            update.counts == nullptr ? 1 : update.counts[i],
                            update.call);
  }
}

Status NotePooledRows(const std::vector<Update>& updates, int round,
                      Parallel* parallel) {
  TaskList here(kRowsPerTask), told(kRowsPerTask);
  std::vector<const Update*> of_steps;
  for (size_t i = 0; i < updates.size(); ++i) {
    const Update& update = updates[i];
    if (update.round != round || update.pooled_grads == nullptr ||
        !update.table->notes_updates()) {
      continue;
    }
    if (update.keys_stay_on_device) {
      of_steps.push_back(&update);
    } else {
      here.Add(static_cast<int>(i), update.keys.size(), 1);
    }
  }
  EV_RETURN_IF_ERROR(RunPieces(parallel, here, [&](const Piece& piece) {
    const Update& update = updates[piece.item];
    std::unique_lock<std::mutex> lock;
    if (!update.solo) {
      lock = std::unique_lock<std::mutex>(*update.table->update_lock.stripe(0));
    }
    NoteRows(update, piece.begin, piece.end);
    return Status::OK();
  }));
  std::vector<StepNotes> steps = NotesOf(of_steps);
  for (size_t k = 0; k < steps.size(); ++k) {
    EV_RETURN_IF_ERROR(of_steps[0]->table->WithName(
        steps[k].step->UpdatedRows(&steps[k].rows)));
    told.Add(static_cast<int>(k), steps[k].rows.rows.size(), 1);
  }
  return RunPieces(parallel, told, [&](const Piece& piece) {
    NoteStepRows(steps[piece.item], piece.begin, piece.end);
    return Status::OK();
  });
}

}  // namespace ev

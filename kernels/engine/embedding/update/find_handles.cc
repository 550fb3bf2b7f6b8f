// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Step 2 of an update: the handles of its rows.

#include <algorithm>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/update/update_steps.h"

namespace ev {
namespace {

constexpr int64_t kKeysPerTask = 2048;
// Minimum number of keys of one table that one task finds or inserts: threads
// that insert into one table contend for its lock and cache lines at every key.
// With many tables each is left to one task, because a task never takes less
// than a fixed fraction of all keys.
constexpr int64_t kInsertsPerTask = 16384;
constexpr int64_t kMostTasks = 16;

// Returns whether the handles of the update's plan are those of the table's
// rows now.
bool HasHandles(const Update& update) {
  const PlannedTable* const planned = update.planned;
  return planned != nullptr &&
         planned->generation == update.table->generation &&
         (update.keys_stay_on_device || !planned->step_finds_rows ||
          update.table->rows_below() == nullptr);
}

// Sets the handles of keys [begin, end) as last seen: from the plan, if there
// is a valid one, else from the index.
void FindKnown(const Update& update, RowHandle* handles, int64_t begin,
               int64_t end) {
  if (HasHandles(update)) {
    const RowHandle* const known = update.keys_stay_on_device
                                       ? update.planned->unknown_handles
                                       : update.planned->handles;
    std::copy(known + begin, known + end, handles + begin);
  } else {
    update.table->index.Find(update.keys.subspan(begin, end - begin),
                             handles + begin);
  }
}

// Step 2 for keys [begin, end) of an update that has its own handles.
Status FindHandles(const Update& update, RowHandle* handles, int64_t begin,
                   int64_t end) {
  const Span<const int64_t> keys = update.keys.subspan(begin, end - begin);
  TableJournal::Writer writer(update.journal);
  if (update.table->filter == nullptr && !HasHandles(update)) {
    return update.table->FindOrInsert(keys, handles + begin, writer.part());
  }
  if (!update.handles_known) FindKnown(update, handles, begin, end);
  // Only those without a row; another call may have inserted them since.
  return update.table->AdmitAbsent(
      keys, update.counts == nullptr ? nullptr : update.counts + begin,
      update.call.step, handles + begin, writer.part());
}

}  // namespace

Status FindAllHandles(std::vector<Update>* updates, int round,
                      std::vector<Recycler<LineBuffer>::Handle>* buffers,
                      Parallel* parallel) {
  TaskList count(kKeysPerTask), find(kKeysPerTask);
  int64_t num_keys = 0;
  for (const Update& update : *updates) {
    if (update.round == round) num_keys += update.keys.size();
  }
  const int64_t inserts_per_task =
      std::max(kInsertsPerTask, num_keys / kMostTasks);
  std::vector<RowHandle*> own(updates->size(), nullptr);
  for (size_t i = 0; i < updates->size(); ++i) {
    Update& update = (*updates)[i];
    if (update.round != round) continue;
    if (HasHandles(update) && update.planned->num_absent == 0) {
      update.handles =
          update.keys_stay_on_device ? nullptr : update.planned->handles;
      continue;
    }
    const int64_t n = update.keys.size();
    buffers->push_back(HandleBuffers().Acquire());
    own[i] = buffers->back()->ReserveOf<RowHandle>(n);
    update.handles = own[i];
    if (n > kKeysPerTask) {
      find.AddAlone(static_cast<int>(i), n, inserts_per_task);
    } else {
      find.Add(static_cast<int>(i), n, 1);
    }
    const AdmissionFilter* filter = update.table->filter.get();
    update.handles_known = filter != nullptr && filter->is_bloom();
    if (update.handles_known) count.Add(static_cast<int>(i), n, 1);
  }
  // A Bloom filter's first count is read only after all keys have been counted.
  EV_RETURN_IF_ERROR(RunPieces(parallel, count, [&](const Piece& piece) {
    const Update& update = (*updates)[piece.item];
    const int32_t* counts = update.counts;
    TableJournal::Writer writer(update.journal);
    FindKnown(update, own[piece.item], piece.begin, piece.end);
    update.table->CountAbsent(
        update.keys.subspan(piece.begin, piece.end - piece.begin),
        counts == nullptr ? nullptr : counts + piece.begin,
        own[piece.item] + piece.begin, writer.part());
    return Status::OK();
  }));
  return RunPieces(parallel, find, [&](const Piece& piece) {
    return FindHandles((*updates)[piece.item], own[piece.item], piece.begin,
                       piece.end);
  });
}

}  // namespace ev

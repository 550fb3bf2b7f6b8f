// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Step 3 of an update: applies the rule to rows with summed gradients.
// pooled_update.h applies it on a GPU, which sums the samples' gradients
// itself.

#include <algorithm>
#include <mutex>

#include "kernels/engine/base/random_rounding.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/update/pooled_update.h"
#include "kernels/engine/embedding/update/update_steps.h"

namespace ev {
namespace {

// Maximum number of gradient floats in one task of step 3; homes may choose
// fewer.
constexpr int64_t kMostFloatsPerTask = 1 << 18;

// Returns the first row in [begin, end) that is updated, or end.
int64_t SkipKeptOut(const Update& update, int64_t begin, int64_t end) {
  while (begin < end && update.handles[begin] >= kFirstReservedHandle) ++begin;
  return begin;
}

// Salts of rows for stochastic rounding.
class Salts {
 public:
  explicit Salts(const Update& update) : update_(update) {}
  void Add(int64_t row) {
    if (!update_.rounds_randomly) return;
    salts_.push_back(RoundingSalt(update_.salt, update_.keys[row]));
  }
  void Clear() { salts_.clear(); }
  // Salts of the rows added since Clear; null if they are not rounded so.
  const uint64_t* data() const {
    return update_.rounds_randomly ? salts_.data() : nullptr;
  }

 private:
  const Update& update_;
  std::vector<uint64_t> salts_;
};

// Step 3 for rows [begin, end), which no other call updates now.
Status ApplyAlone(const RowRule& rule, const Update& update, int64_t begin,
                  int64_t end) {
  EmbeddingTable::Impl* table = update.table;
  const int64_t at_once = table->home->costs().rows_per_apply;
  const bool with_meta = table->records_meta();
  Salts salts(update);
  for (int64_t i = begin; i < end; i += at_once) {
    const int64_t last = std::min(end, i + at_once);
    salts.Clear();
    for (int64_t j = i; j < last; ++j) salts.Add(j);
    if (table->changes != nullptr) {
      // The marks are set after the rule has been applied to these rows.
      for (int64_t j = SkipKeptOut(update, i, last); j < last;
           j = SkipKeptOut(update, j + 1, last)) {
        table->changes->PrefetchMark(update.handles[j]);
      }
    }
    EV_RETURN_IF_ERROR(table->WithName(table->home->Apply(
        rule, Span<const RowHandle>(update.handles + i, last - i),
        update.slot_columns, update.grads + i * table->dim(), salts.data())));
    if (with_meta) UpdateMeta(update, i, last);
  }
  return Status::OK();
}

// The same while others update the table too: rows sorted by stripe, each
// stripe under its mutex.
Status ApplyStriped(const RowRule& rule, const Update& update, int64_t begin,
                    int64_t end) {
  EmbeddingTable::Impl* table = update.table;
  const int64_t dim = table->dim();
  std::vector<int64_t> by_stripe[UpdateLock::kStripes];
  for (int64_t i = SkipKeptOut(update, begin, end); i < end;
       i = SkipKeptOut(update, i + 1, end)) {
    by_stripe[UpdateLock::StripeOf(update.handles[i])].push_back(i);
  }
  std::vector<RowHandle> handles;
  std::vector<float> grads;
  Salts salts(update);
  for (const std::vector<int64_t>& rows : by_stripe) {
    if (rows.empty()) continue;
    handles.clear();
    grads.clear();
    salts.Clear();
    for (int64_t i : rows) {
      handles.push_back(update.handles[i]);
      salts.Add(i);
      const float* const grad = update.grads + i * dim;
      grads.insert(grads.end(), grad, grad + dim);
    }
    std::lock_guard<std::mutex> lock(*table->update_lock.stripe(handles[0]));
    EV_RETURN_IF_ERROR(table->WithName(table->home->Apply(
        rule, handles, update.slot_columns, grads.data(), salts.data())));
    for (int64_t i : rows) UpdateMeta(update, i, i + 1);
  }
  return Status::OK();
}

// Step 3 for rows [begin, end).
Status ApplyRows(const RowRule& rule, const Update& update, int64_t begin,
                 int64_t end) {
  if (update.solo) return ApplyAlone(rule, update, begin, end);
  if (update.table->home->costs().writes_side_by_side) {
    return ApplyStriped(rule, update, begin, end);
  }
  // One task at a time: the first stripe stands for all.
  std::lock_guard<std::mutex> lock(*update.table->update_lock.stripe(0));
  return ApplyAlone(rule, update, begin, end);
}

PooledUpdate PooledUpdateOf(const Update& update) {
  PooledUpdate pooled;
  pooled.table = update.table;
  pooled.planned = update.planned;
  if (update.keys_stay_on_device) {
    pooled.unknown_handles = update.handles;
  } else {
    pooled.handles = update.handles;
    pooled.keys = update.keys;
  }
  pooled.slot_columns = update.slot_columns;
  pooled.grads = update.pooled_grads;
  pooled.stream = update.stream;
  pooled.is_solo = update.solo;
  pooled.call = update.call;
  pooled.rounds_randomly = update.rounds_randomly;
  pooled.salt = update.salt;
  return pooled;
}

}  // namespace

Status ApplyRound(const RowRule& rule, const std::vector<Update>& updates,
                  int round, Parallel* parallel) {
  TaskList apply(kMostFloatsPerTask);
  std::vector<PooledUpdate> pooled;
  for (size_t i = 0; i < updates.size(); ++i) {
    if (updates[i].round != round) continue;
    if (updates[i].pooled_grads != nullptr) {
      pooled.push_back(PooledUpdateOf(updates[i]));
      continue;
    }
    const RowHomeCosts& costs = updates[i].table->home->costs();
    apply.Add(static_cast<int>(i), updates[i].keys.size(),
              updates[i].table->dim() *
                  (kMostFloatsPerTask / costs.floats_per_update));
  }
  std::vector<StepMetaUpdates> meta_updates;
  const auto apply_all = [&] {
    EV_RETURN_IF_ERROR(
        ApplyPooledOnDevices(rule, pooled, parallel, &meta_updates));
    EV_RETURN_IF_ERROR(UpdatePooledMeta(updates, round, parallel));
    return RunPieces(parallel, apply, [&](const Piece& piece) {
      return ApplyRows(rule, updates[piece.item], piece.begin, piece.end);
    });
  };
  const Status status = CatchBadAlloc(apply_all);
  // Last, since it waits for a device. Also after an error, since updates that
  // were started change rows.
  const Status status_of_meta =
      UpdateMetaOfSteps(updates, round, meta_updates, parallel);
  return status.ok() ? status_of_meta : status;
}

}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Operations on all rows while no call uses them, and compaction of the file.

#include <sched.h>

#include <algorithm>
#include <utility>

#include "kernels/engine/base/prefetch.h"
#include "kernels/engine/storage/ssd/tiered_impl.h"
#include "kernels/engine/storage/ssd/tiered_rows.h"

namespace ev {

// Moves all rows to the file. Called under cache_slots_mu_.
Status TieredRows::WriteAllOut() {
  for (int64_t p = 0; p < used_; ++p) {
    CacheSlot cache_slot = static_cast<CacheSlot>(p);
    const RowHandle handle = handle_of(cache_slot)->load();
    if (handle == kNoRow) continue;
    row_state(handle)->store(kMoving);
    Status status;
    if (WriteOut({&cache_slot, 1}, /*is_reserved=*/false, &status) == 0) {
      return status;
    }
    free_.push_back(cache_slot);
  }
  return Status::OK();
}

// Stores fresh rows with their current initial values.
Status TieredRows::MakeFreshRows() {
  std::vector<float> made(floats());
  return row_states_.ForEachFresh(
      [&](RowHandle handle, std::atomic<uint32_t>* where, int64_t default_row) {
        fresh_.Fill(default_row, made.data());
        RecordNumber record;
        EV_RETURN_IF_ERROR(file_->Append(handle, 0, made.data(),
                                         /*is_reserved=*/false, &record));
        where->store(record + 1);
        return Status::OK();
      });
}

Status TieredRows::SetSlots(Span<const SlotShape> slots) {
  std::lock_guard<std::mutex> compact(compact_mu_);
  std::lock_guard<std::mutex> lock(cache_slots_mu_);
  const size_t before = fresh_.shape().num_slots();
  if (!fresh_.KeepsSlots(slots)) EV_RETURN_IF_ERROR(MakeFreshRows());
  RowShape shape = fresh_.shape().With(slots);
  if (slots.size() == before) {
    fresh_.SetShape(std::move(shape));
    return Status::OK();
  }
  EV_RETURN_IF_ERROR(WriteAllOut());
  // All that needs memory comes before the first change.
  std::unique_ptr<SlabArray> rows = NewRowMemory(shape.floats());
  added_.reserve(slots.size());
  EV_RETURN_IF_ERROR(file_->SetFloats(shape.floats()));
  for (size_t s = before; s < slots.size(); ++s) {
    added_.push_back(slots[s].initial_value);
  }
  fresh_.SetShape(std::move(shape));
  UseRowMemory(std::move(rows));
  return Status::OK();
}

void TieredRows::Forget(Span<const RowHandle> handles) {
  std::lock_guard<std::mutex> compact(compact_mu_);
  std::lock_guard<std::mutex> lock(cache_slots_mu_);
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < handles.size(); ++i) {
    if (i + kAhead < handles.size())
      PrefetchLine(row_state(handles[i + kAhead]));
    const uint32_t seen = row_state(handles[i])->exchange(0);
    if (InSlowTier(seen)) {
      const RecordNumber record = seen - 1;
      file_->Drop({&record, 1});
    } else if (InFastTier(seen)) {
      const CacheSlot cache_slot = seen & kPayload;
      Wrote({&cache_slot, 1});
      handle_of(cache_slot)->store(kNoRow);
      free_.push_back(cache_slot);
    }
  }
  if (static_cast<int64_t>(free_.size()) == used_) DropCacheSlots();
  row_states_.DropUnused(handles);
}

void TieredRows::Clear() {
  std::lock_guard<std::mutex> compact(compact_mu_);
  std::lock_guard<std::mutex> lock(cache_slots_mu_);
  row_states_.Clear();
  DropCacheSlots();
  file_->Clear();
}

Status TieredRows::Flush() {
  {
    std::lock_guard<std::mutex> compact(compact_mu_);
    std::lock_guard<std::mutex> lock(cache_slots_mu_);
    EV_RETURN_IF_ERROR(WriteAllOut());
  }
  return file_->Sync();
}

// --- Compaction ---

// Moves a record out of a segment that is to be emptied. If the record is still
// current, its row is appended again or, if the row is in memory, marked as
// modified.
Status TieredRows::MoveRecord(const RowFile::Record& record) {
  if (compactor_.stopping()) {
    return FailedPrecondition("the table is being destroyed");
  }
  if (!row_states_.Has(record.handle)) return Status::OK();
  std::atomic<uint32_t>* const where = row_state(record.handle);
  for (;;) {
    uint32_t seen = where->load(std::memory_order_acquire);
    if (seen == record.number + 1) {
      // Not in room that an update has reserved, which may need it before this
      // segment is free.
      std::vector<float> whole;
      const float* from = record.row;
      if (record.floats != floats()) {
        whole.assign(record.row, record.row + record.floats);
        whole.resize(floats());
        Complete(record.floats, whole.data());
        from = whole.data();
      }
      RecordNumber moved;
      EV_RETURN_IF_ERROR(file_->Append(record.handle, record.rank, from,
                                       /*is_reserved=*/false, &moved));
      if (where->compare_exchange_strong(seen, moved + 1,
                                         std::memory_order_acq_rel)) {
        file_->Drop({&record.number, 1});
        compacted_.fetch_add(1, std::memory_order_relaxed);
        return Status::OK();
      }
      file_->Drop({&moved, 1});
      continue;
    }
    if (seen == kMoving) {
      // Another thread reads it or writes it, and does not wait for this
      // thread.
      if (compactor_.stopping()) return Status::OK();
      sched_yield();
      continue;
    }
    if (!InFastTier(seen)) return Status::OK();
    // The row is in memory. Its record is current unless the row was modified
    // after it was read. A call that holds the row is not affected by the row
    // state being kMoving meanwhile.
    const CacheSlot cache_slot = seen & kPayload;
    if (entry(cache_slot)->record.load() != record.number) {
      if (where->load(std::memory_order_acquire) == seen) return Status::OK();
      continue;
    }
    if (!where->compare_exchange_strong(seen, kMoving,
                                        std::memory_order_acq_rel)) {
      continue;
    }
    if (entry(cache_slot)->record.load() == record.number)
      Wrote({&cache_slot, 1});
    where->store(kInFastTier | cache_slot, std::memory_order_release);
    return Status::OK();
  }
}

Status TieredRows::CompactOne(bool* found) {
  std::lock_guard<std::mutex> lock(compact_mu_);
  return file_->Visit(
      [this](const RowFile::Record& record) { return MoveRecord(record); },
      found);
}

// A failed move leaves the rows where they are. A caller that then needs one
// gets the error.
void TieredRows::CompactWhileSparse() {
  bool found = true;
  while (found && file_->IsSparse() && !compactor_.stopping() &&
         CompactOne(&found).ok()) {
  }
}

void TieredRows::Compact() {
  if (!file_->IsSparse()) return;
  if (compacts_in_thread_) {
    compactor_.Wake();
  } else {
    CompactWhileSparse();
  }
}

}  // namespace ev

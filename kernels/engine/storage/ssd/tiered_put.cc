// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows that a cache above puts back, and contents that it makes worthless.

#include <sched.h>

#include <algorithm>
#include <mutex>
#include <new>

#include "kernels/engine/base/prefetch.h"
#include "kernels/engine/storage/ssd/tiered_impl.h"
#include "kernels/engine/storage/ssd/tiered_rows.h"

namespace ev {
namespace {

constexpr size_t kAtOnce = 64;
constexpr size_t kAhead = 8;

}  // namespace

Status TieredRows::Put(Span<const RowHandle> handles, bool is_reserved,
                       const float* rows, const uint32_t* ranks, size_t* done) {
  *done = 0;
  CacheSlot cache_slots[kAtOnce];
  while (*done < handles.size()) {
    const size_t most = std::min(kAtOnce, handles.size() - *done);
    std::fill_n(cache_slots, kAtOnce, kNoCacheSlot);
    Status status;
    size_t taken = 0;
    try {
      taken = TakeCacheSlots(is_reserved, Span<CacheSlot>(cache_slots, most),
                             &status);
    } catch (...) {
      for (const CacheSlot cache_slot : cache_slots) {
        if (cache_slot != kNoCacheSlot) GiveBack({&cache_slot, 1});
      }
      throw;
    }
    EV_RETURN_IF_ERROR(status);
    for (size_t k = 0; k < taken; ++k) {
      const size_t i = *done;
      if (k + kAhead < taken) {
        PrefetchLine(row_state(handles[i + kAhead]));
        PrefetchLine(entry(cache_slots[k + kAhead]));
        PrefetchBytes(row(cache_slots[k + kAhead]), floats() * sizeof(float));
      }
      bool used = false;
      status = PutAt(cache_slots[k], handles[i], rows + i * floats(), ranks[i],
                     &used);
      if (!used) GiveBack({&cache_slots[k], 1});
      if (!status.ok()) {
        GiveBack(Span<const CacheSlot>(cache_slots + k + 1, taken - k - 1));
        return status;
      }
      ++*done;
    }
    // Other calls hold all cache slots, or the hand met only rows that are
    // moving.
    if (taken == 0) sched_yield();
  }
  return Status::OK();
}

// *used: whether the row is in the cache slot now.
Status TieredRows::PutAt(CacheSlot cache_slot, RowHandle handle,
                         const float* from, uint32_t rank, bool* used) {
  std::atomic<uint32_t>* const where = row_state(handle);
  uint32_t seen;
  for (;;) {
    seen = where->load(std::memory_order_acquire);
    // Another thread writes it out or compacts it, and does not wait for this
    // one.
    if (seen == kMoving) {
      sched_yield();
      continue;
    }
    if (seen == 0) return NoSuchRow(handle);
    if (InFastTier(seen)) {  // unchanged
      SetRank(handle, rank);
      return Status::OK();
    }
    if (where->compare_exchange_strong(seen, kMoving,
                                       std::memory_order_acq_rel)) {
      break;
    }
  }
  Entry* const in = entry(cache_slot);
  handle_of(cache_slot)->store(handle, std::memory_order_release);
  in->record.store(InSlowTier(seen) ? seen - 1 : kNoRecord);
  in->rank.store(rank, std::memory_order_relaxed);
  std::copy_n(from, floats(), row(cache_slot));
  where->store(kInFastTier | cache_slot, std::memory_order_release);
  *used = true;
  return Status::OK();
}

Status TieredRows::ReservePut(int64_t rows) {
  EV_RETURN_IF_ERROR(Reserve(rows));
  Status status;
  try {
    std::lock_guard<std::mutex> lock(cache_slots_mu_);
    while (status.ok() && static_cast<int64_t>(free_.size()) < rows &&
           used_ < capacity_) {
      CacheSlot cache_slot;
      status = MakeCacheSlot(&cache_slot);
      if (status.ok()) free_.push_back(cache_slot);
    }
  } catch (const std::bad_alloc&) {
    Unreserve(rows);
    throw;
  }
  if (!status.ok()) Unreserve(rows);
  return status;
}

void TieredRows::Discard(Span<const RowHandle> handles) {
  RecordNumber dead[kAtOnce];
  CacheSlot cache_slots[kAtOnce];
  for (size_t begin = 0; begin < handles.size(); begin += kAtOnce) {
    size_t num_dead = 0, num_cache_slots = 0;
    const size_t end = std::min(handles.size(), begin + kAtOnce);
    for (size_t i = begin; i < end; ++i) PrefetchLine(row_state(handles[i]));
    for (size_t i = begin; i < end; ++i) {
      std::atomic<uint32_t>* const where = row_state(handles[i]);
      uint32_t seen = where->load(std::memory_order_acquire);
      // No other thread changes a row state that is kMoving.
      while (seen == kMoving ||
             ((InSlowTier(seen) || InFastTier(seen)) &&
              !where->compare_exchange_strong(seen, kMoving,
                                              std::memory_order_acq_rel))) {
        if (seen == kMoving) sched_yield();
        seen = where->load(std::memory_order_acquire);
      }
      RecordNumber record = kNoRecord;
      if (InSlowTier(seen)) {
        record = seen - 1;
      } else if (InFastTier(seen)) {
        const CacheSlot cache_slot = seen & kPayload;
        record = entry(cache_slot)->record.exchange(kNoRecord);
        cache_slots[num_cache_slots++] = cache_slot;
      } else {
        continue;
      }
      if (record != kNoRecord) dead[num_dead++] = record;
      where->store(kFresh, std::memory_order_release);
    }
    file_->Drop(Span<const RecordNumber>(dead, num_dead));
    GiveBack(Span<const CacheSlot>(cache_slots, num_cache_slots));
  }
}

void TieredRows::SetRank(RowHandle handle, uint32_t rank) {
  const uint32_t seen = row_state(handle)->load(std::memory_order_acquire);
  // A row that leaves meanwhile loses the new rank, or its cache slot's next
  // row gets it: a rank is a hint.
  if (InFastTier(seen)) {
    entry(seen & kPayload)->rank.store(rank, std::memory_order_relaxed);
  }
}

}  // namespace ev

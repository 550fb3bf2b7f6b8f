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
  Place places[kAtOnce];
  while (*done < handles.size()) {
    const size_t most = std::min(kAtOnce, handles.size() - *done);
    std::fill_n(places, kAtOnce, kNoPlace);
    Status status;
    size_t taken = 0;
    try {
      taken = TakePlaces(is_reserved, Span<Place>(places, most), &status);
    } catch (...) {
      for (const Place place : places) {
        if (place != kNoPlace) GiveBack({&place, 1});
      }
      throw;
    }
    EV_RETURN_IF_ERROR(status);
    for (size_t k = 0; k < taken; ++k) {
      const size_t i = *done;
      if (k + kAhead < taken) {
        PrefetchLine(word(handles[i + kAhead]));
        PrefetchLine(entry(places[k + kAhead]));
        PrefetchBytes(row(places[k + kAhead]), floats() * sizeof(float));
      }
      bool used = false;
      status =
          PutAt(places[k], handles[i], rows + i * floats(), ranks[i], &used);
      if (!used) GiveBack({&places[k], 1});
      if (!status.ok()) {
        GiveBack(Span<const Place>(places + k + 1, taken - k - 1));
        return status;
      }
      ++*done;
    }
    // Other calls hold all places, or the hand met only rows that are moving.
    if (taken == 0) sched_yield();
  }
  return Status::OK();
}

// *used: whether the row is in the place now.
Status TieredRows::PutAt(Place place, RowHandle handle, const float* from,
                         uint32_t rank, bool* used) {
  std::atomic<uint32_t>* const where = word(handle);
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
  Entry* const in = entry(place);
  handle_of(place)->store(handle, std::memory_order_release);
  in->record.store(InSlowTier(seen) ? seen - 1 : kNoRecord);
  in->rank.store(rank, std::memory_order_relaxed);
  std::copy_n(from, floats(), row(place));
  where->store(kInFastTier | place, std::memory_order_release);
  *used = true;
  return Status::OK();
}

Status TieredRows::ReservePut(int64_t rows) {
  EV_RETURN_IF_ERROR(Reserve(rows));
  Status status;
  try {
    std::lock_guard<std::mutex> lock(places_mu_);
    while (status.ok() && static_cast<int64_t>(free_.size()) < rows &&
           used_ < capacity_) {
      Place place;
      status = MakePlace(&place);
      if (status.ok()) free_.push_back(place);
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
  Place places[kAtOnce];
  for (size_t begin = 0; begin < handles.size(); begin += kAtOnce) {
    size_t num_dead = 0, num_places = 0;
    const size_t end = std::min(handles.size(), begin + kAtOnce);
    for (size_t i = begin; i < end; ++i) PrefetchLine(word(handles[i]));
    for (size_t i = begin; i < end; ++i) {
      std::atomic<uint32_t>* const where = word(handles[i]);
      uint32_t seen = where->load(std::memory_order_acquire);
      // No other thread changes a word that is kMoving.
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
        const Place place = seen & kPayload;
        record = entry(place)->record.exchange(kNoRecord);
        places[num_places++] = place;
      } else {
        continue;
      }
      if (record != kNoRecord) dead[num_dead++] = record;
      where->store(kFresh, std::memory_order_release);
    }
    file_->Drop(Span<const RecordNumber>(dead, num_dead));
    GiveBack(Span<const Place>(places, num_places));
  }
}

void TieredRows::SetRank(RowHandle handle, uint32_t rank) {
  const uint32_t seen = word(handle)->load(std::memory_order_acquire);
  // A row that leaves meanwhile loses the new rank, or its place's next row
  // gets it: a rank is a hint.
  if (InFastTier(seen)) {
    entry(seen & kPayload)->rank.store(rank, std::memory_order_relaxed);
  }
}

}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The cache slots of a DeviceCache: assigning and freeing them.

#include <algorithm>
#include <mutex>
#include <utility>

#include "kernels/engine/base/prefetch.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/rows/hbm_dram_ssd/device_cache.h"
#include "kernels/engine/rows/hbm_dram_ssd/device_cache_impl.h"

namespace ev {
namespace {

// Rows evicted together: some MB on the link.
constexpr size_t kEvictAtOnce = 8192;

}  // namespace

// Makes up to n cache slots, marked busy; fewer after an error. The caller must
// flush the device before it renews their rows. Called under cache_slots_mu_.
Status DeviceCache::Grow(int64_t n, std::vector<CacheSlot>* cache_slots) {
  if (n <= 0) return Status::OK();
  cache_slots->reserve(cache_slots->size() + n);
  for (int64_t k = 0; k < n && made_ < capacity_; ++k) {
    const size_t slab = made_ >> kEntriesLog2;
    if (!entries_.has_slab(slab)) {
      // Here, so that GiveBack cannot fail.
      free_.reserve((slab + 1) << kEntriesLog2);
      if (!entries_.AddSlab(slab)) {
        return ResourceExhausted("no memory for another row");
      }
    }
    const CacheSlot cache_slot = static_cast<CacheSlot>(made_);
    EV_RETURN_IF_ERROR(device_->NewRow(cache_slot, 0));
    ++made_;
    entries_.Use(slab, made_ - slab * entries_.slab_rows());
    entry(cache_slot)->state.fetch_add(kBusy, std::memory_order_acquire);
    cache_slots->push_back(cache_slot);
  }
  return Status::OK();
}

Status DeviceCache::TakeCacheSlots(size_t n, Use use,
                                   std::vector<CacheSlot>* taken) {
  if (n == 0) return Status::OK();
  taken->reserve(n);
  const auto take_free = [&] {
    const size_t count = std::min(n - taken->size(), free_.size());
    taken->insert(taken->end(), free_.end() - count, free_.end());
    free_.resize(free_.size() - count);
    return count;
  };
  Status status;
  bool has_grown = false, has_any = false;
  {
    std::lock_guard<std::mutex> lock(cache_slots_mu_);
    demand_ = std::max<int64_t>(demand_ - demand_ / 16, n);
    take_free();
    const size_t before = taken->size();
    status = CatchBadAlloc([&] { return Grow(n - before, taken); });
    has_grown = taken->size() > before;
    has_any = made_ > 0;
  }
  // Even if the device has no more memory, its existing cache slots can be
  // used.
  if (!has_any) return status;
  const auto take = [&] {
    std::lock_guard<std::mutex> lock(cache_slots_mu_);
    return take_free();
  };
  while (taken->size() < n) {
    std::lock_guard<std::mutex> turn(evict_mu_);
    take();  // the thread may have freed some meanwhile
    if (taken->size() == n) break;
    size_t freed = 0;
    status = CatchBadAlloc(
        [&] { return Evict(n - taken->size(), use == Use::kWrites, &freed); });
    if (take() == 0 && freed == 0) break;
  }
  const Status flushed = FlushMade(has_grown);
  if (!flushed.ok()) {
    GiveBack(*taken);
    taken->clear();
    return flushed;
  }
  return status;
}

// Writes the rows of new cache slots to the device. If that fails, the caller
// frees the cache slots, and the next call tries again.
Status DeviceCache::FlushMade(bool has_new) {
  int64_t failed = 0;
  {
    std::lock_guard<std::mutex> lock(cache_slots_mu_);
    failed = failed_flushes_;
    if (!has_new && failed == mended_flushes_) return Status::OK();
  }
  const Status flushed = CatchBadAlloc([&] { return device_->Flush(); });
  std::lock_guard<std::mutex> lock(cache_slots_mu_);
  if (flushed.ok()) {
    mended_flushes_ = std::max(mended_flushes_, failed);
  } else {
    ++failed_flushes_;
  }
  return flushed;
}

void DeviceCache::GiveBack(Span<const CacheSlot> cache_slots) {
  if (cache_slots.empty()) return;
  std::lock_guard<std::mutex> lock(cache_slots_mu_);
  for (const CacheSlot cache_slot : cache_slots) {
    entry(cache_slot)->home.store(0, std::memory_order_relaxed);
    free_.push_back(cache_slot);
  }
}

Status DeviceCache::Reserve(int64_t rows) {
  const int64_t live = live_.load();
  EV_RETURN_IF_ERROR(host_->Reserve(rows, live > capacity_ ? live : 0));
  std::vector<CacheSlot> cache_slots;
  Status status;
  {
    std::lock_guard<std::mutex> lock(cache_slots_mu_);
    const int64_t wanted = std::min(reserved_ + rows, live);
    const int64_t missing = wanted - static_cast<int64_t>(free_.size());
    status = CatchBadAlloc([&] { return Grow(missing, &cache_slots); });
    if (status.ok()) reserved_ += rows;
  }
  if (!cache_slots.empty()) {
    const Status flushed = FlushMade(/*has_new=*/true);
    GiveBack(cache_slots);
    if (status.ok() && !flushed.ok()) {
      Unreserve(rows);
      return flushed;
    }
  }
  if (!status.ok()) host_->Unreserve(rows);
  return status;
}

void DeviceCache::Unreserve(int64_t rows) {
  host_->Unreserve(rows);
  std::lock_guard<std::mutex> lock(cache_slots_mu_);
  reserved_ -= rows;
}

// Chooses victims and marks them busy. Called under evict_mu_.
void DeviceCache::Choose(size_t n, std::vector<CacheSlot>* victims) {
  int64_t made;
  {
    std::lock_guard<std::mutex> lock(cache_slots_mu_);
    made = made_;
  }
  std::vector<CacheSlot> chosen(n);
  victims->reserve(n);
  const auto idle_rank = [this](CacheSlot cache_slot) {
    Entry* const in = entry(cache_slot);
    return in->state.load(std::memory_order_relaxed) == 0 ? &in->rank : nullptr;
  };
  chosen.resize(hand_.Choose(made, n, idle_rank, chosen.data()));
  for (const CacheSlot cache_slot : chosen) {
    uint32_t idle = 0;
    if (entry(cache_slot)
            ->state.compare_exchange_strong(idle, kBusy,
                                            std::memory_order_acq_rel)) {
      victims->push_back(cache_slot);
    }  // else a call holds it now
  }
}

// Called under evict_mu_.
Status DeviceCache::Evict(size_t n, bool is_reserved, size_t* freed) {
  std::vector<CacheSlot> victims;
  Choose(std::min(n, kEvictAtOnce), &victims);
  return WriteBack(std::move(victims), is_reserved, freed);
}

// Frees the victims' cache slots. Rows with a valid copy elsewhere, except on
// an SSD alone, need no copying. The others are copied; if that fails, those
// without any other copy stay. Called under evict_mu_.
Status DeviceCache::WriteBack(std::vector<CacheSlot> victims, bool is_reserved,
                              size_t* freed) {
  *freed = 0;
  std::vector<CacheSlot> gone, written;
  std::vector<HostRows::Row> rows, unused;
  const auto stays = [&](CacheSlot cache_slot) {
    entry(cache_slot)->state.fetch_sub(kBusy, std::memory_order_release);
  };
  Status status = CatchBadAlloc([&] {
    gone.reserve(victims.size());
    written.reserve(victims.size());
    rows.reserve(victims.size());
    unused.reserve(victims.size());
    return Status::OK();
  });
  if (!status.ok()) {
    for (const CacheSlot cache_slot : victims) stays(cache_slot);
    return status;
  }
  for (const CacheSlot cache_slot : victims) {
    Entry* const out = entry(cache_slot);
    const uint32_t home = out->home.load(std::memory_order_relaxed);
    if (InSlowTier(home) && !host_->IsInMemory(home - 1)) {
      written.push_back(cache_slot);
      rows.push_back(home - 1);
      continue;
    }
    if (home != 0) {
      if (InSlowTier(home)) {
        host_->SetRank(home - 1, UseRanks::Kept(out->rank));
      }
      row_state(out->handle)->store(home, std::memory_order_release);
      gone.push_back(cache_slot);
      continue;
    }
    HostRows::Row row;
    if (status.ok()) {
      status = CatchBadAlloc(
          [&] { return host_->Allocate(out->handle, is_reserved, &row); });
    }
    if (!status.ok()) {
      stays(cache_slot);
      continue;
    }
    written.push_back(cache_slot);
    rows.push_back(row);
  }
  const Status copied =
      CatchBadAlloc([&] { return CopyDown(written, rows, is_reserved); });
  for (size_t k = 0; k < written.size(); ++k) {
    Entry* const out = entry(written[k]);
    if (copied.ok() || out->home.load(std::memory_order_relaxed) != 0) {
      row_state(out->handle)->store(rows[k] + 1, std::memory_order_release);
      gone.push_back(written[k]);
    } else {
      stays(written[k]);
      unused.push_back(rows[k]);
    }
  }
  if (copied.ok()) {
    written_.fetch_add(written.size() * floats() * sizeof(float),
                       std::memory_order_relaxed);
  } else {
    host_->Free(unused);
    status = copied;
  }
  *freed = gone.size();
  GiveBack(gone);
  return status;
}

Status DeviceCache::CopyDown(const std::vector<CacheSlot>& cache_slots,
                             const std::vector<HostRows::Row>& rows,
                             bool is_reserved) {
  if (cache_slots.empty()) return Status::OK();
  std::vector<uint32_t> ranks(cache_slots.size());
  for (size_t k = 0; k < cache_slots.size(); ++k) {
    ranks[k] = UseRanks::Kept(entry(cache_slots[k])->rank);
  }
  Status written;
  const Status copied = device_->ReadWhole(
      cache_slots, [&](size_t begin, size_t n, const float* from) {
        if (!written.ok()) return;
        written =
            host_->Write(Span<const HostRows::Row>(rows.data() + begin, n),
                         is_reserved, from, ranks.data() + begin);
      });
  EV_RETURN_IF_ERROR(copied);
  return written;
}

// --- The thread that keeps cache slots free ---

bool DeviceCache::IsShort() const {
  std::lock_guard<std::mutex> lock(cache_slots_mu_);
  return made_ == capacity_ &&
         static_cast<int64_t>(free_.size()) < std::min(capacity_ / 16, demand_);
}

void DeviceCache::KeepFree() {
  if (IsShort()) evictor_.Wake();
}

// A failure leaves the rows where they are. A call that then needs a cache slot
// gets the error.
void DeviceCache::WorkAhead() {
  size_t freed = 1;
  while (freed > 0 && IsShort() && !evictor_.stopping()) {
    const int64_t few = std::max<int64_t>(1, capacity_ / 64);
    freed = 0;
    std::lock_guard<std::mutex> turn(evict_mu_);
    if (!Evict(few, /*is_reserved=*/false, &freed).ok()) break;
  }
}

}  // namespace ev

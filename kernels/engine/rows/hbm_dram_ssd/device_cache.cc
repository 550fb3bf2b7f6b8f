// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Holding rows, and copying rows to the device.

#include "kernels/engine/rows/hbm_dram_ssd/device_cache.h"

#include <sched.h>

#include <algorithm>

#include "kernels/engine/base/prefetch.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/rows/hbm_dram_ssd/device_cache_impl.h"
#include "kernels/engine/storage/tiered/read_rounds.h"

namespace ev {
namespace {

constexpr size_t kVisitedAtOnce = 4096;
// Candidates to compare per evicted row.
constexpr size_t kCandidatesEach = 4;
constexpr size_t kRowsAhead = 16;

}  // namespace

DeviceCache::DeviceCache(const DeviceCacheOptions& options,
                         std::unique_ptr<GpuRowHome> device,
                         std::unique_ptr<HostRows> host)
    : budget_(options.device_bytes),
      fresh_(options.dim, options.default_rows),
      device_(std::move(device)),
      host_(std::move(host)),
      shared_ranks_(options.ranks),
      ranks_(*shared_ranks_),
      entries_(sizeof(Entry), kEntriesLog2),
      hand_(&ranks_, kCandidatesEach),
      evictor_([this] { WorkAhead(); }) {
  DropCacheSlots();
}

DeviceCache::~DeviceCache() { evictor_.Stop(); }

void DeviceCache::DropCacheSlots() {
  const int64_t row_bytes = floats() * static_cast<int64_t>(sizeof(float));
  capacity_ = std::min<int64_t>(std::max(kMinCacheSlots, budget_ / row_bytes),
                                kPayload);
  entries_.Clear();
  made_ = 0;
  hand_.Reset();
  free_.clear();
}

DeviceCache::Entry* DeviceCache::entry(CacheSlot cache_slot) const {
  return reinterpret_cast<Entry*>(entries_.Address(cache_slot));
}

Status DeviceCache::NewRow(RowHandle handle, int64_t default_row) {
  EV_RETURN_IF_ERROR(host_->AddHandle(handle));
  EV_RETURN_IF_ERROR(row_states_.Make(handle, default_row));
  live_.fetch_add(1, std::memory_order_relaxed);
  return Status::OK();
}

DeviceCache::Pin DeviceCache::TryPin(RowHandle handle, bool counts,
                                     CacheSlot* cache_slot, uint32_t* seen) {
  std::atomic<uint32_t>* const where = row_state(handle);
  for (;;) {
    *seen = where->load(std::memory_order_acquire);
    if (*seen == 0) return Pin::kNoRow;
    if (!InFastTier(*seen)) return Pin::kAway;
    Entry* const in = entry(*seen & kPayload);
    const uint32_t before = in->state.fetch_add(1, std::memory_order_acquire);
    const bool still = where->load(std::memory_order_acquire) == *seen;
    if ((before & kBusy) == 0 && still) {
      if (counts) ranks_.Use(&in->rank);
      *cache_slot = *seen & kPayload;
      return Pin::kHeld;
    }
    in->state.fetch_sub(1, std::memory_order_release);
    if (still) return Pin::kBusy;
  }
}

Status DeviceCache::Hold(Span<const RowHandle> handles, Use use,
                         CacheSlot* cache_slots, size_t* held) {
  EV_RETURN_IF_ERROR(broken_);
  *held = 0;
  // More rows than cache slots would evict each other for nothing.
  size_t size = std::min<size_t>(handles.size(), capacity());
  // Allocated before rows are held, which must not stay held.
  std::vector<size_t> pending;
  pending.reserve(size);
  ranks_.Advance();
  if (ranks_.IsTimeToAge(&aged_)) {
    std::lock_guard<std::mutex> lock(cache_slots_mu_);
    for (int64_t cache_slot = 0; cache_slot < made_; ++cache_slot) {
      ranks_.Age(&entry(static_cast<CacheSlot>(cache_slot))->rank);
    }
  }
  while (size > 0) {
    pending.clear();
    int64_t hits = 0;
    for (size_t n = 0; n < size; ++n) {
      if (n + 24 < size && handles[n + 24] < kFirstReservedHandle) {
        PrefetchLine(row_state(handles[n + 24]));
      }
      if (n + 8 < size && handles[n + 8] < kFirstReservedHandle) {
        const uint32_t ahead =
            row_state(handles[n + 8])->load(std::memory_order_acquire);
        if (InFastTier(ahead)) PrefetchLine(entry(ahead & kPayload));
      }
      cache_slots[n] = handles[n];
      if (handles[n] >= kFirstReservedHandle) continue;
      uint32_t seen;
      cache_slots[n] = kNoRow;
      if (TryPin(handles[n], true, &cache_slots[n], &seen) == Pin::kHeld) {
        ++hits;
      } else {
        pending.push_back(n);
      }
    }
    hits_.fetch_add(hits, std::memory_order_relaxed);
    size_t end = size;
    Status status;
    while (status.ok() && !pending.empty()) {
      const size_t before = pending.size();
      status = CatchBadAlloc(
          [&] { return Round(handles, use, &pending, cache_slots, &end); });
      // Rows that another thread is moving arrive without this call's help.
      if (pending.size() == before) sched_yield();
    }
    if (!status.ok()) {
      Release(Span<const CacheSlot>(cache_slots, size));
      return status;
    }
    Release(Span<const CacheSlot>(cache_slots + end, size - end));
    if (end > 0 || use == Use::kReads) {
      *held = end;
      break;
    }
    // Other calls hold all cache slots. A single row must get a cache slot
    // eventually.
    size = std::max<size_t>(1, size / 2);
    sched_yield();
  }
  KeepFree();
  return Status::OK();
}

Status DeviceCache::Round(Span<const RowHandle> handles, Use use,
                          std::vector<size_t>* pending, CacheSlot* cache_slots,
                          size_t* end) {
  std::vector<size_t> busy;
  std::vector<Load> loads, mine;
  busy.reserve(pending->size());
  loads.reserve(pending->size());
  mine.reserve(pending->size());
  for (const size_t i : *pending) {
    Load load{i, handles[i], kNoRow, 0};
    switch (TryPin(handles[i], true, &cache_slots[i], &load.from)) {
      case Pin::kHeld:
        break;
      case Pin::kBusy:
        busy.push_back(i);
        break;
      case Pin::kAway:
        loads.push_back(load);
        break;
      case Pin::kNoRow:
        return NoSuchRow(handles[i]);
    }
  }
  std::vector<CacheSlot> taken;
  const Status status = TakeCacheSlots(loads.size(), use, &taken);
  const bool is_fatal =
      use == Use::kWrites || status.code() != StatusCode::kResourceExhausted;
  if (!status.ok() && taken.empty() && is_fatal) return status;
  size_t used = 0;
  for (size_t k = 0; k < loads.size(); ++k) {
    Load& load = loads[k];
    if (used + kRowsAhead < taken.size()) {
      PrefetchLine(entry(taken[used + kRowsAhead]));
    }
    if (used == taken.size()) {
      *end = std::min(*end, load.i);
      continue;
    }
    load.cache_slot = taken[used];
    uint32_t seen = load.from;
    if (!row_state(load.handle)
             ->compare_exchange_strong(seen, kInFastTier | load.cache_slot,
                                       std::memory_order_acq_rel)) {
      busy.push_back(load.i);  // another thread has moved it meanwhile
      continue;
    }
    Entry* const in = entry(load.cache_slot);
    in->handle = load.handle;
    in->home.store(load.from, std::memory_order_relaxed);
    mine.push_back(load);
    ++used;
  }
  GiveBack(Span<const CacheSlot>(taken.data() + used, taken.size() - used));
  EV_RETURN_IF_ERROR(LoadAll(mine));
  for (const Load& load : mine) cache_slots[load.i] = load.cache_slot;
  pending->clear();
  for (const size_t i : busy) {
    if (i < *end) pending->push_back(i);
  }
  return Status::OK();
}

Status DeviceCache::LoadAll(const std::vector<Load>& loads) {
  if (loads.empty()) return Status::OK();
  misses_.fetch_add(loads.size(), std::memory_order_relaxed);
  std::vector<uint32_t> ranks;
  const Status status = CatchBadAlloc([&] {
    ranks.resize(loads.size());
    return CopyUp(loads, ranks.data());
  });
  for (size_t k = 0; k < loads.size(); ++k) {
    const Load& load = loads[k];
    if (!status.ok()) {
      row_state(load.handle)->store(load.from, std::memory_order_release);
      GiveBack(Span<const CacheSlot>(&load.cache_slot, 1));
      continue;
    }
    Entry* const in = entry(load.cache_slot);
    ranks_.Arrive(&in->rank, ranks[k]);
    in->state.fetch_sub(kBusy - 1, std::memory_order_release);
  }
  return status;
}

// Copies rows from the memory below while the device receives the previous
// ones. The device itself creates fresh rows.
Status DeviceCache::CopyUp(const std::vector<Load>& loads, uint32_t* ranks) {
  std::vector<CacheSlot> cache_slots;
  std::vector<HostRows::Row> rows;
  std::vector<size_t> which;
  cache_slots.reserve(loads.size());
  rows.reserve(loads.size());
  which.reserve(loads.size());
  Status renewed;
  for (size_t k = 0; k < loads.size(); ++k) {
    const Load& load = loads[k];
    if (IsFresh(load.from)) {
      ranks[k] = 0;
      if (!renewed.ok()) continue;
      renewed = CatchBadAlloc([&] {
        return device_->RenewRow(load.cache_slot, load.from & kPayload);
      });
    } else {
      cache_slots.push_back(load.cache_slot);
      rows.push_back(load.from - 1);
      which.push_back(k);
    }
  }
  // Flush even if no row follows, or after an error: a row must not be renewed
  // twice before a Flush.
  if (cache_slots.size() < loads.size()) {
    EV_RETURN_IF_ERROR(FlushMade(/*has_new=*/true));
  }
  EV_RETURN_IF_ERROR(renewed);
  if (cache_slots.empty()) return Status::OK();
  std::vector<uint32_t> brought(rows.size());
  // After an error the device receives anything; its cache slots become free.
  Status read;
  const Status copied =
      device_->WriteWhole(cache_slots, [&](size_t begin, size_t n, float* to) {
        if (!read.ok()) return;
        read = host_->Read(Span<const HostRows::Row>(rows.data() + begin, n),
                           to, brought.data() + begin);
      });
  EV_RETURN_IF_ERROR(read);
  EV_RETURN_IF_ERROR(copied);
  for (size_t k = 0; k < rows.size(); ++k) ranks[which[k]] = brought[k];
  return Status::OK();
}

void DeviceCache::Wrote(Span<const CacheSlot> cache_slots) {
  std::vector<HostRows::Row> stale;
  stale.reserve(cache_slots.size());
  for (const CacheSlot cache_slot : cache_slots) {
    if (cache_slot >= kFirstReservedHandle) continue;
    std::atomic<uint32_t>& home = entry(cache_slot)->home;
    if (home.load(std::memory_order_relaxed) == 0) continue;
    const uint32_t old = home.exchange(0);
    if (InSlowTier(old)) stale.push_back(old - 1);
  }
  if (!stale.empty()) host_->Free(stale);
}

void DeviceCache::Release(Span<const CacheSlot> cache_slots) {
  for (const CacheSlot cache_slot : cache_slots) {
    if (cache_slot >= kFirstReservedHandle) continue;
    entry(cache_slot)->state.fetch_sub(1, std::memory_order_release);
  }
}

Status DeviceCache::Visit(Span<const RowHandle> handles,
                          const Visitor& visitor) {
  EV_RETURN_IF_ERROR(broken_);
  std::vector<size_t> which, below;
  std::vector<CacheSlot> cache_slots;
  std::vector<HostRows::Row> rows;
  // Allocated before rows are held, which must not stay held.
  const size_t most = std::min(kVisitedAtOnce, handles.size());
  which.reserve(most);
  below.reserve(most);
  cache_slots.reserve(most);
  rows.reserve(most);
  const auto round = [&](const std::vector<size_t>& left,
                         std::vector<size_t>* again) {
    again->reserve(left.size());
    which.clear();
    below.clear();
    cache_slots.clear();
    rows.clear();
    Status status;
    {
      const HostRows::ReadLock lock = host_->KeepContents();
      for (const size_t i : left) {
        CacheSlot cache_slot;
        uint32_t seen;
        const Pin pin = TryPin(handles[i], false, &cache_slot, &seen);
        if (pin == Pin::kHeld) {
          which.push_back(i);
          cache_slots.push_back(cache_slot);
        } else if (pin == Pin::kBusy) {
          again->push_back(i);
        } else if (pin == Pin::kNoRow) {
          status = NoSuchRow(handles[i]);
        } else if (IsFresh(seen)) {
          visitor.fresh(i, seen & kPayload);
        } else {
          below.push_back(i);
          rows.push_back(seen - 1);
        }
      }
      if (status.ok() && !rows.empty()) {
        status = CatchBadAlloc([&] {
          return host_->Visit(rows, [&](size_t k, const float* row) {
            visitor.host(below[k], row);
          });
        });
      }
    }
    if (status.ok() && !which.empty()) {
      status =
          CatchBadAlloc([&] { return visitor.device(which, cache_slots); });
    }
    Release(cache_slots);
    return status;
  };
  return ReadInRounds(handles, kVisitedAtOnce, round);
}

int DeviceCache::TierOf(RowHandle handle) const {
  const uint32_t seen = row_state(handle)->load(std::memory_order_acquire);
  if (!InSlowTier(seen)) return 0;
  return host_->IsStored(seen - 1) ? 2 : 1;
}

TierStats DeviceCache::stats() const {
  TierStats stats;
  {
    std::lock_guard<std::mutex> lock(cache_slots_mu_);
    stats.memory_rows = made_ - static_cast<int64_t>(free_.size());
  }
  stats.hits = hits_.load();
  stats.misses = misses_.load();
  stats.written_bytes = written_.load();
  TierStats below;
  host_->AddStats(&stats, &below);
  return stats;
}

TierStats DeviceCache::stats_below() const {
  TierStats stats, below;
  host_->AddStats(&stats, &below);
  return below;
}

int64_t DeviceCache::bytes() const {
  const int64_t elsewhere =
      device_->bytes() + host_->bytes() + row_states_.bytes();
  std::lock_guard<std::mutex> lock(cache_slots_mu_);
  return elsewhere + static_cast<int64_t>(entries_.bytes());
}

}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Finding cache slots for rows that move into memory, and evicting rows.

#include <algorithm>
#include <new>
#include <utility>

#include "kernels/engine/base/prefetch.h"
#include "kernels/engine/storage/ssd/tiered_impl.h"
#include "kernels/engine/storage/ssd/tiered_rows.h"

namespace ev {

// Gives the caller cache slots without a row. Returns fewer than requested if
// all others are held or, with an error in *status, if none could be freed.
size_t TieredRows::TakeCacheSlots(bool is_reserved, Span<CacheSlot> cache_slots,
                                  Status* status) {
  size_t taken = 0;
  while (taken < cache_slots.size() && status->ok()) {
    size_t num_victims = 0;
    {
      std::lock_guard<std::mutex> lock(cache_slots_mu_);
      while (taken < cache_slots.size() && !free_.empty()) {
        cache_slots[taken++] = free_.back();
        free_.pop_back();
      }
      while (taken < cache_slots.size() && used_ < capacity_) {
        *status = MakeCacheSlot(&cache_slots[taken]);
        if (!status->ok()) break;
        ++taken;
      }
      // A call that has reserved its room uses the cache slots that exist.
      if (is_reserved && used_ > 0) *status = Status::OK();
      if (taken == cache_slots.size() || !status->ok()) break;
      num_victims = ChooseVictims(cache_slots.subspan(
          taken, std::min<size_t>(cache_slots.size() - taken, kEvictAtOnce)));
    }
    if (num_victims == 0) break;
    const Span<CacheSlot> victims = cache_slots.subspan(taken, num_victims);
    const size_t claimed = Claim(victims);
    const size_t freed = claimed == 0 ? 0
                                      : WriteOut(victims.subspan(0, claimed),
                                                 is_reserved, status);
    std::fill(victims.begin() + freed, victims.end(), kNoCacheSlot);
    taken += freed;
    // Other calls hold everything that seemed free.
    if (claimed == 0) break;
  }
  // Some cache slots are better than none: the next call reports the error.
  if (taken > 0) *status = Status::OK();
  return taken;
}

Status TieredRows::Reserve(int64_t rows) {
  EV_RETURN_IF_ERROR(file_->Reserve(rows + kEvictAtOnce));
  Status status;
  try {
    std::lock_guard<std::mutex> lock(cache_slots_mu_);
    if (used_ == 0) {
      CacheSlot first;
      status = MakeCacheSlot(&first);
      if (status.ok()) free_.push_back(first);
    }
  } catch (const std::bad_alloc&) {
    Unreserve(rows);
    throw;
  }
  if (!status.ok()) Unreserve(rows);
  return status;
}

// Makes a cache slot that has held no row yet. Called under cache_slots_mu_.
Status TieredRows::MakeCacheSlot(CacheSlot* cache_slot) {
  const auto add = [this](SlabArray* to, bool uses) {
    const size_t slab = used_ >> to->rows_log2();
    if (!to->has_slab(slab) && !to->AddSlab(slab)) return false;
    if (uses) to->Use(slab, used_ + 1 - slab * to->slab_rows());
    return true;
  };
  for (SlabArray* to : {&handles_, &entries_, rows_.get()}) {
    if (!add(to, false)) {
      return ResourceExhausted("no memory for another row");
    }
  }
  // Allocated now, so that GiveBack cannot fail.
  const size_t needed = static_cast<size_t>(used_) + 1;
  if (free_.capacity() < needed) {
    free_.reserve(std::max(needed, 2 * free_.capacity()));
  }
  for (SlabArray* to : {&handles_, &entries_, rows_.get()}) {
    add(to, true);
  }
  *cache_slot = static_cast<CacheSlot>(used_);
  handle_of(*cache_slot)->store(kNoRow, std::memory_order_relaxed);
  ++used_;
  return Status::OK();
}

void TieredRows::GiveBack(Span<const CacheSlot> cache_slots) {
  if (cache_slots.empty()) return;
  for (const CacheSlot cache_slot : cache_slots) {
    handle_of(cache_slot)->store(kNoRow, std::memory_order_relaxed);
  }
  std::lock_guard<std::mutex> lock(cache_slots_mu_);
  for (const CacheSlot cache_slot : cache_slots) free_.push_back(cache_slot);
}

// Chooses cache slots whose rows are to leave, subject to Claim. Called under
// cache_slots_mu_.
size_t TieredRows::ChooseVictims(Span<CacheSlot> victims) {
  const auto idle_rank = [this](CacheSlot cache_slot) {
    Entry* const in = entry(cache_slot);
    // Claim checks this again.
    return MayBeHeld(*in) ? nullptr : &in->rank;
  };
  return hand_.Choose(capacity_, victims.size(), idle_rank, victims.data());
}

// Moves to the front the cache slots whose row this thread may move, and
// returns their number. The state of such a row is kMoving, and no call holds
// it.
size_t TieredRows::Claim(Span<CacheSlot> victims) {
  // Acquire: the row's state may be in memory that was added since.
  const auto handle = [this](CacheSlot cache_slot) {
    return handle_of(cache_slot)->load(std::memory_order_acquire);
  };
  for (const CacheSlot cache_slot : victims)
    PrefetchLine(handle_of(cache_slot));
  for (const CacheSlot cache_slot : victims) {
    // Read once: until the cache slot is claimed, others may clear it.
    const RowHandle h = handle(cache_slot);
    if (h != kNoRow) PrefetchLine(row_state(h));
  }
  size_t moving = 0;
  for (size_t k = 0; k < victims.size(); ++k) {
    // Skips a cache slot without a row, or whose row another thread is moving.
    // If the hand went round and chose a cache slot twice, it is skipped the
    // second time.
    const RowHandle h = handle(victims[k]);
    uint32_t seen = kInFastTier | victims[k];
    if (h == kNoRow || !row_state(h)->compare_exchange_strong(
                           seen, kMoving, std::memory_order_seq_cst)) {
      continue;
    }
    victims[moving++] = victims[k];
  }
  briefly_.Observe();
  kept_.Observe();
  size_t claimed = 0;
  for (size_t k = 0; k < moving; ++k) {
    const CacheSlot cache_slot = victims[k];
    if (MayBeHeld(*entry(cache_slot))) {
      row_state(handle(cache_slot))
          ->store(kInFastTier | cache_slot, std::memory_order_release);
    } else {
      victims[claimed++] = cache_slot;
    }
  }
  return claimed;
}

// Moves the rows of claimed cache slots to the file. The first cache slots, as
// many as are returned, have no row afterwards and belong to the caller. The
// others are unchanged.
size_t TieredRows::WriteOut(Span<CacheSlot> cache_slots, bool is_reserved,
                            Status* status) {
  RecordWrite writes[kEvictAtOnce];
  const auto handle = [this](CacheSlot cache_slot) {
    return handle_of(cache_slot)->load(std::memory_order_relaxed);
  };
  // Rows whose contents the file still has come first.
  size_t clean = 0;
  for (size_t i = 0; i < cache_slots.size(); ++i) {
    if (entry(cache_slots[i])->record.load() != kNoRecord) {
      std::swap(cache_slots[clean++], cache_slots[i]);
    }
  }
  const size_t changed = cache_slots.size() - clean;
  for (size_t i = 0; i < changed; ++i) {
    const CacheSlot cache_slot = cache_slots[clean + i];
    writes[i].handle = handle(cache_slot);
    writes[i].rank = UseRanks::Kept(entry(cache_slot)->rank);
    writes[i].row = row(cache_slot);
  }
  size_t written = 0;
  *status =
      file_->Append(Span<RecordWrite>(writes, changed), is_reserved, &written);
  for (size_t i = 0; i < clean + written; ++i) {
    const RecordNumber record = i < clean ? entry(cache_slots[i])->record.load()
                                          : writes[i - clean].record;
    row_state(handle(cache_slots[i]))
        ->store(record + 1, std::memory_order_release);
    handle_of(cache_slots[i])->store(kNoRow, std::memory_order_relaxed);
  }
  for (size_t i = clean + written; i < cache_slots.size(); ++i) {
    row_state(handle(cache_slots[i]))
        ->store(kInFastTier | cache_slots[i], std::memory_order_release);
  }
  evicted_.fetch_add(clean + written, std::memory_order_relaxed);
  return clean + written;
}

}  // namespace ev

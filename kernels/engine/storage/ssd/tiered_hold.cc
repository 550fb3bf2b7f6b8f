// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Holding rows, and moving rows into memory.

#include <sched.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/engine/base/prefetch.h"
#include "kernels/engine/storage/ssd/tiered_impl.h"
#include "kernels/engine/storage/ssd/tiered_rows.h"

namespace ev {
namespace {

// Stamps per fence: few enough that the second reads of the row states, and the
// counted uses, hit the cache.
constexpr size_t kStampedAtOnce = 512;
// Prefetch distances: first the state of a row, then its entry, then its
// floats.
constexpr size_t kStateAhead = 32, kEntryAhead = 16, kRowAhead = 8;

}  // namespace

// A handle whose row is not in memory, and its row state.
struct TieredRows::Absent {
  size_t i;
  uint32_t seen;
};

// Cache slots that a call has taken, and rows being moved to them. Rows that
// have not arrived when it is destroyed stay where they were, and their cache
// slots become free.
class TieredRows::Incoming {
 public:
  explicit Incoming(TieredRows* to) : to_(to) {}
  ~Incoming() {
    for (size_t k = arrived_; k < reads_.size(); ++k) Return(k);
    GiveBackSpare();
  }
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  // Allocates the memory for all later calls.
  void Expect(size_t rows) {
    spare_.assign(rows, kNoCacheSlot);
    which_.reserve(rows);
    reads_.reserve(rows);
    cache_slots_.reserve(rows);
  }
  Span<CacheSlot> spare() {
    return Span<CacheSlot>(spare_.data(), spare_.size());
  }
  CacheSlot TakeSpare() {
    const CacheSlot cache_slot = spare_[next_];
    spare_[next_++] = kNoCacheSlot;
    return cache_slot;
  }
  void GiveBackSpare() {
    size_t count = 0;
    for (const CacheSlot cache_slot : spare_) {
      if (cache_slot != kNoCacheSlot) spare_[count++] = cache_slot;
    }
    to_->GiveBack(Span<const CacheSlot>(spare_.data(), count));
    spare_.clear();
  }

  // Lists row i, whose row state is kMoving, for reading from its record into a
  // cache slot.
  void Load(size_t i, RowHandle handle, RecordNumber record,
            CacheSlot cache_slot) {
    which_.push_back(i);
    cache_slots_.push_back(cache_slot);
    reads_.emplace_back();
    reads_.back().record = record;
    reads_.back().handle = handle;
    reads_.back().row = to_->row(cache_slot);
  }
  // The first row not yet handled, whether its read succeeded or not.
  bool HasLeft() const { return arrived_ < reads_.size(); }
  const RecordRead& read() const { return reads_[arrived_]; }
  size_t i() const { return which_[arrived_]; }
  CacheSlot cache_slot() const { return cache_slots_[arrived_]; }
  void Arrived() { ++arrived_; }
  void Failed() { Return(arrived_++); }

  Span<RecordRead> reads() {
    return Span<RecordRead>(reads_.data(), reads_.size());
  }

 private:
  void Return(size_t k) {
    to_->row_state(reads_[k].handle)
        ->store(reads_[k].record + 1, std::memory_order_release);
    to_->GiveBack({&cache_slots_[k], 1});
  }

  TieredRows* const to_;
  std::vector<CacheSlot> spare_;
  size_t next_ = 0;
  std::vector<size_t> which_;
  std::vector<RecordRead> reads_;
  std::vector<CacheSlot> cache_slots_;
  size_t arrived_ = 0;
};

void TieredRows::AdvanceTime() {
  ranks_.Advance();
  if (!ranks_.IsTimeToAge(&aged_)) return;
  std::lock_guard<std::mutex> lock(cache_slots_mu_);
  for (int64_t cache_slot = 0; cache_slot < used_; ++cache_slot) {
    ranks_.Age(&entry(static_cast<CacheSlot>(cache_slot))->rank);
  }
}

void TieredRows::Enter(Holding* holding) {
  holding->Release();
  holding->number_ = briefly_.Enter();
  holding->numbers_ = &briefly_;
}

// Holds the rows that are in memory; lists the others.
void TieredRows::Find(Span<const RowHandle> handles, const Holding& holding,
                      float** rows, CacheSlot* cache_slots,
                      std::vector<Absent>* absent, std::vector<size_t>* busy) {
  const size_t size = handles.size();
  const size_t bytes = floats() * sizeof(float);
  // Rows that are used much later would have left the cache again.
  const bool touches_rows = holding.numbers_ == &briefly_;
  // Acquire: the address of an entry or row is valid only after its cache slot
  // was made.
  const auto ahead = [&](size_t i) {
    return i < size && handles[i] < kFirstReservedHandle
               ? row_state(handles[i])->load(std::memory_order_acquire)
               : 0;
  };
  int64_t hits = 0;
  for (size_t begin = 0; begin < size; begin += kStampedAtOnce) {
    const size_t end = std::min(size, begin + kStampedAtOnce);
    for (size_t i = begin; i < end; ++i) {
      if (i + kStateAhead < size &&
          handles[i + kStateAhead] < kFirstReservedHandle) {
        PrefetchLine(row_state(handles[i + kStateAhead]));
      }
      const uint32_t for_entry = ahead(i + kEntryAhead);
      if (InFastTier(for_entry)) PrefetchLine(entry(for_entry & kPayload));
      if (touches_rows) {
        const uint32_t for_row = ahead(i + kRowAhead);
        if (InFastTier(for_row)) PrefetchBytes(row(for_row & kPayload), bytes);
      }
      cache_slots[i] = kNoCacheSlot;
      rows[i] = nullptr;
      if (handles[i] >= kFirstReservedHandle) continue;
      const uint32_t seen =
          row_state(handles[i])->load(std::memory_order_acquire);
      if (!InFastTier(seen)) continue;
      cache_slots[i] = seen & kPayload;
      Stamp(holding, cache_slots[i]);
    }
    holding.numbers_->Publish();
    for (size_t i = begin; i < end; ++i) {
      if (handles[i] >= kFirstReservedHandle) continue;
      const uint32_t seen =
          row_state(handles[i])->load(std::memory_order_seq_cst);
      if (cache_slots[i] != kNoCacheSlot &&
          seen == (kInFastTier | cache_slots[i])) {
        ranks_.Use(&entry(cache_slots[i])->rank);
        rows[i] = row(cache_slots[i]);
        ++hits;
        continue;
      }
      cache_slots[i] = kNoCacheSlot;
      if (InFastTier(seen) || seen == kMoving) {
        busy->push_back(i);
      } else {
        absent->push_back(Absent{i, seen});
      }
    }
  }
  hits_.fetch_add(hits, std::memory_order_relaxed);
}

TieredRows::Got TieredRows::TryHold(RowHandle handle, const Holding& holding,
                                    CacheSlot* cache_slot) {
  for (;;) {
    const uint32_t seen = row_state(handle)->load(std::memory_order_acquire);
    if (seen == kMoving) return Got::kBusy;
    if (!InFastTier(seen)) return Got::kElsewhere;
    *cache_slot = seen & kPayload;
    Stamp(holding, *cache_slot);
    holding.numbers_->Publish();
    if (row_state(handle)->load(std::memory_order_seq_cst) == seen) {
      ranks_.Use(&entry(*cache_slot)->rank);
      return Got::kHeld;
    }
  }
}

// Creates a fresh row, or lists a stored one for reading. Returns false if the
// row has moved meanwhile.
bool TieredRows::MoveIn(RowHandle handle, const Absent& absent,
                        const Holding& holding, Incoming* incoming,
                        float** rows, CacheSlot* cache_slots) {
  uint32_t seen = absent.seen;
  if (!row_state(handle)->compare_exchange_strong(seen, kMoving,
                                                  std::memory_order_acq_rel)) {
    return false;
  }
  const CacheSlot cache_slot = incoming->TakeSpare();
  Entry* const in = entry(cache_slot);
  handle_of(cache_slot)->store(handle, std::memory_order_release);
  if (InSlowTier(seen)) {
    in->record.store(seen - 1);
    incoming->Load(absent.i, handle, seen - 1, cache_slot);
    return true;
  }
  in->record.store(kNoRecord);
  fresh_.Fill(seen & kPayload, row(cache_slot));
  ranks_.Arrive(&in->rank, 0);
  Stamp(holding, cache_slot);
  row_state(handle)->store(kInFastTier | cache_slot, std::memory_order_release);
  rows[absent.i] = row(cache_slot);
  cache_slots[absent.i] = cache_slot;
  return true;
}

Status TieredRows::LoadAll(const Holding& holding, Incoming* incoming,
                           float** rows, CacheSlot* cache_slots) {
  if (!incoming->HasLeft()) return Status::OK();
  misses_.fetch_add(incoming->reads().size(), std::memory_order_relaxed);
  file_->Read(incoming->reads());
  Status status;
  while (incoming->HasLeft()) {
    const RecordRead& read = incoming->read();
    if (!read.status.ok()) {
      if (status.ok()) status = read.status;
      incoming->Failed();
      continue;
    }
    const CacheSlot cache_slot = incoming->cache_slot();
    Entry* const in = entry(cache_slot);
    Complete(read.floats, read.row);
    ranks_.Arrive(&in->rank, read.rank);
    Stamp(holding, cache_slot);
    row_state(read.handle)
        ->store(kInFastTier | cache_slot, std::memory_order_release);
    rows[incoming->i()] = read.row;
    cache_slots[incoming->i()] = cache_slot;
    incoming->Arrived();
  }
  return status;
}

// Sets *held to the number of rows there was room for, possibly 0.
Status TieredRows::HoldSome(Span<const RowHandle> handles, bool is_reserved,
                            const Holding& holding, float** rows,
                            CacheSlot* cache_slots, size_t* held) {
  *held = 0;
  std::vector<Absent> absent;
  std::vector<size_t> busy;
  Find(handles, holding, rows, cache_slots, &absent, &busy);
  size_t whole = handles.size();  // rows [0, whole) are all held
  if (!absent.empty()) {
    // Take cache slots for rows that are not in memory, and read the stored
    // ones.
    Incoming incoming(this);
    incoming.Expect(absent.size());
    busy.reserve(busy.size() + absent.size());
    Status status;
    const size_t taken = TakeCacheSlots(is_reserved, incoming.spare(), &status);
    if (taken < absent.size()) whole = absent[taken].i;
    for (size_t k = 0; k < taken && status.ok(); ++k) {
      const size_t i = absent[k].i;
      if (absent[k].seen == 0) {
        status = NoSuchRow(handles[i]);
      } else if (!MoveIn(handles[i], absent[k], holding, &incoming, rows,
                         cache_slots)) {
        busy.push_back(i);
      }
    }
    incoming.GiveBackSpare();
    const Status loaded = LoadAll(holding, &incoming, rows, cache_slots);
    EV_RETURN_IF_ERROR(status);
    EV_RETURN_IF_ERROR(loaded);
  }
  // Rows that another call was reading or writing. That call does not wait for
  // this one.
  for (const size_t i : busy) {
    if (i >= whole) continue;
    Got got;
    while ((got = TryHold(handles[i], holding, &cache_slots[i])) ==
           Got::kBusy) {
      sched_yield();
    }
    if (got == Got::kHeld) {
      rows[i] = row(cache_slots[i]);
    } else {
      whole = i;  // evicted meanwhile: left to the next call
    }
  }
  *held = whole;
  return Status::OK();
}

Status TieredRows::Hold(Span<const RowHandle> handles, bool is_reserved,
                        float** rows, CacheSlot* cache_slots, size_t* held,
                        Holding* holding) {
  *held = 0;
  AdvanceTime();
  // More rows than cache slots can never be held at once.
  for (size_t size = std::min<size_t>(handles.size(), capacity_); size > 0;
       size = (size + 1) / 2) {
    Enter(holding);
    const Status status = HoldSome(handles.subspan(0, size), is_reserved,
                                   *holding, rows, cache_slots, held);
    if (status.ok() && *held > 0) return status;
    holding->Release();
    EV_RETURN_IF_ERROR(status);
    // Other calls hold all cache slots, or the first rows were evicted for
    // later ones.
    sched_yield();
  }
  return Status::OK();
}

Status TieredRows::Keep(Span<const RowHandle> handles, const float** rows,
                        bool* all, Holding* holding) {
  const size_t size = handles.size();
  *all = false;
  holding->Release();
  std::vector<float*> found(size);
  std::vector<CacheSlot> cache_slots(size);
  if (!kept_.TryEnter(static_cast<int64_t>(size), capacity_ / 2,
                      &holding->number_)) {
    return Status::OK();
  }
  holding->numbers_ = &kept_;
  AdvanceTime();
  // While waiting for room, this call waits only for calls that hold rows
  // briefly.
  size_t at_once = size;
  for (size_t done = 0; done < size;) {
    at_once = std::min(at_once, size - done);
    size_t held = 0;
    const Status status = HoldSome(
        handles.subspan(done, at_once), /*is_reserved=*/false, *holding,
        found.data() + done, cache_slots.data() + done, &held);
    if (!status.ok()) holding->Release();
    EV_RETURN_IF_ERROR(status);
    done += held;
    if (held > 0) continue;
    at_once = (at_once + 1) / 2;
    sched_yield();
  }
  for (size_t i = 0; i < size; ++i) {
    if (found[i] != nullptr) rows[i] = found[i];
  }
  *all = true;
  return Status::OK();
}

}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Places for rows that come into memory, and which rows leave theirs.

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/engine/storage/ssd/tiered_impl.h"
#include "kernels/engine/storage/ssd/tiered_rows.h"

namespace ev {
namespace {

// Rows that are compared for each that goes.
constexpr int64_t kCandidatesEach = 8;

}  // namespace

// Places that nobody has. They are busy, and the caller's. Fewer than asked
// for: all others are held, or, with an error, none could be made free.
size_t TieredRows::TakePlaces(bool is_reserved, Span<Place> places,
                              Status* status) {
  size_t taken = 0;
  while (taken < places.size() && status->ok()) {
    size_t num_victims = 0;
    {
      std::lock_guard<std::mutex> lock(places_mu_);
      while (taken < places.size() && !free_.empty()) {
        places[taken++] = free_.back();
        free_.pop_back();
      }
      while (taken < places.size() && used_ < capacity_) {
        const size_t slab = used_ >> rows_->rows_log2();
        if ((!entries_->has_slab(slab) && !entries_->AddSlab(slab)) ||
            (!rows_->has_slab(slab) && !rows_->AddSlab(slab))) {
          *status = ResourceExhausted("no memory for another row");
          break;
        }
        const Place place = static_cast<Place>(used_++);
        rows_->Use(slab, used_ - slab * rows_->slab_rows());
        entries_->Use(slab, used_ - slab * rows_->slab_rows());
        entry(place)->state.fetch_add(kBusy, std::memory_order_acquire);
        places[taken++] = place;
      }
      if (taken == places.size() || !status->ok()) break;
      num_victims = ChooseVictims(places.subspan(
          taken, std::min<size_t>(places.size() - taken, kEvictAtOnce)));
    }
    if (num_victims == 0) break;
    taken += WriteOut(places.subspan(taken, num_victims), is_reserved, status);
  }
  // Some is better than none: what hinders the next will be said then.
  if (taken > 0) *status = Status::OK();
  return taken;
}

void TieredRows::GiveBack(Span<const Place> places) {
  if (places.empty()) return;
  for (const Place place : places) entry(place)->record.store(kNoRecord);
  std::lock_guard<std::mutex> lock(places_mu_);
  free_.insert(free_.end(), places.begin(), places.end());
}

// Under places_mu_: places whose rows are to go, now busy. None: all are held.
size_t TieredRows::ChooseVictims(Span<Place> victims) {
  const size_t wanted = victims.size();
  std::vector<std::pair<uint32_t, Place>> candidates;
  candidates.reserve(wanted * kCandidatesEach);
  const uint32_t now = now_.load(std::memory_order_relaxed);
  // Twice round at most: the first time all may have been used.
  for (int64_t met = 0;
       candidates.size() < wanted * kCandidatesEach && met < 2 * capacity_ &&
       (met < capacity_ || candidates.empty());
       ++met) {
    const Place place = static_cast<Place>(hand_);
    hand_ = hand_ + 1 == capacity_ ? 0 : hand_ + 1;
    Entry* const met_entry = entry(place);
    if (met_entry->state.load(std::memory_order_relaxed) != 0) continue;
    const uint32_t rank = met_entry->rank.load(std::memory_order_relaxed);
    uint32_t plain = rank & ~kUsed;
    if (strategy_ == CacheStrategy::kLfu) {
      plain -= plain / 16;
      met_entry->rank.store(plain, std::memory_order_relaxed);
    } else if (rank & kUsed) {
      met_entry->rank.store(plain, std::memory_order_relaxed);
    }
    if (rank & kUsed) continue;
    // Of kLru, the lowest is the one whose use lies farthest back.
    candidates.emplace_back(strategy_ == CacheStrategy::kLfu
                                ? plain
                                : ~kUsed - ((now - plain) & ~kUsed),
                            place);
  }
  if (candidates.size() > wanted) {
    std::nth_element(candidates.begin(), candidates.begin() + (wanted - 1),
                     candidates.end());
    candidates.resize(wanted);
  }
  size_t count = 0;
  for (const std::pair<uint32_t, Place>& candidate : candidates) {
    uint32_t idle = 0;
    if (!entry(candidate.second)
             ->state.compare_exchange_strong(idle, kBusy,
                                             std::memory_order_acq_rel)) {
      continue;  // someone has come to hold it
    }
    // Met twice, by a hand that went round, it is busy the second time.
    victims[count++] = candidate.second;
  }
  return count;
}

// The places are busy. The first of them, as many as are returned, are free
// afterwards and the caller's; the others are as they were.
size_t TieredRows::WriteOut(Span<Place> places, bool is_reserved,
                            Status* status) {
  RecordWrite writes[kEvictAtOnce];
  // Those of which the file has what they are come first.
  size_t clean = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    if (entry(places[i])->record.load() != kNoRecord) {
      std::swap(places[clean++], places[i]);
    }
  }
  const size_t changed = places.size() - clean;
  for (size_t i = 0; i < changed; ++i) {
    const Entry* const out = entry(places[clean + i]);
    writes[i].handle = out->handle;
    writes[i].rank = out->rank.load(std::memory_order_relaxed) & ~kUsed;
    writes[i].row = row(places[clean + i]);
  }
  size_t written = 0;
  *status =
      file_->Append(Span<RecordWrite>(writes, changed), is_reserved, &written);
  for (size_t i = 0; i < clean + written; ++i) {
    Entry* const out = entry(places[i]);
    const RecordNumber record =
        i < clean ? out->record.load() : writes[i - clean].record;
    // In this order: whoever finds the row here no more finds it there.
    word(out->handle)->store(record + 1, std::memory_order_release);
    out->record.store(kNoRecord);
  }
  for (size_t i = clean + written; i < places.size(); ++i) {
    entry(places[i])->state.fetch_sub(kBusy, std::memory_order_release);
  }
  evicted_.fetch_add(clean + written, std::memory_order_relaxed);
  return clean + written;
}

}  // namespace ev

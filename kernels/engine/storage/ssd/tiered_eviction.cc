// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Finding places for rows that move into memory, and evicting rows.

#include <algorithm>
#include <utility>

#include "kernels/engine/base/prefetch.h"
#include "kernels/engine/storage/ssd/tiered_impl.h"
#include "kernels/engine/storage/ssd/tiered_rows.h"

namespace ev {

// Gives the caller places without a row. Returns fewer than requested if all
// others are held or, with an error in *status, if none could be freed.
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
        *status = MakePlace(&places[taken]);
        if (!status->ok()) break;
        ++taken;
      }
      // A call that has reserved its room uses the places that exist.
      if (is_reserved && used_ > 0) *status = Status::OK();
      if (taken == places.size() || !status->ok()) break;
      num_victims = ChooseVictims(places.subspan(
          taken, std::min<size_t>(places.size() - taken, kEvictAtOnce)));
    }
    if (num_victims == 0) break;
    const Span<Place> victims = places.subspan(taken, num_victims);
    const size_t claimed = Claim(victims);
    const size_t freed = claimed == 0 ? 0
                                      : WriteOut(victims.subspan(0, claimed),
                                                 is_reserved, status);
    std::fill(victims.begin() + freed, victims.end(), kNoPlace);
    taken += freed;
    // Other calls hold everything that seemed free.
    if (claimed == 0) break;
  }
  // Some places are better than none: the next call reports the error.
  if (taken > 0) *status = Status::OK();
  return taken;
}

// Makes a place that has held no row yet. Called under places_mu_.
Status TieredRows::MakePlace(Place* place) {
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
  *place = static_cast<Place>(used_);
  handle_of(*place)->store(kNoRow, std::memory_order_relaxed);
  ++used_;
  return Status::OK();
}

void TieredRows::GiveBack(Span<const Place> places) {
  if (places.empty()) return;
  for (const Place place : places) {
    handle_of(place)->store(kNoRow, std::memory_order_relaxed);
  }
  std::lock_guard<std::mutex> lock(places_mu_);
  for (const Place place : places) free_.push_back(place);
}

// Chooses places whose rows are to leave, subject to Claim. Called under
// places_mu_.
size_t TieredRows::ChooseVictims(Span<Place> victims) {
  const auto idle_rank = [this](Place place) {
    Entry* const in = entry(place);
    // Claim checks this again.
    return MayBeHeld(*in) ? nullptr : &in->rank;
  };
  return hand_.Choose(capacity_, victims.size(), idle_rank, victims.data());
}

// Moves to the front the places whose row this thread may move, and returns
// their number. The word of such a row is kMoving, and no call holds it.
size_t TieredRows::Claim(Span<Place> victims) {
  // Acquire: the row's word may be in memory that was added since.
  const auto handle = [this](Place place) {
    return handle_of(place)->load(std::memory_order_acquire);
  };
  for (const Place place : victims) PrefetchLine(handle_of(place));
  for (const Place place : victims) {
    // Read once: until the place is claimed, others may clear it.
    const RowHandle h = handle(place);
    if (h != kNoRow) PrefetchLine(word(h));
  }
  size_t moving = 0;
  for (size_t k = 0; k < victims.size(); ++k) {
    // Skips a place without a row, or whose row another thread is moving. If
    // the hand went round and chose a place twice, it is skipped the second
    // time.
    const RowHandle h = handle(victims[k]);
    uint32_t seen = kInFastTier | victims[k];
    if (h == kNoRow || !word(h)->compare_exchange_strong(
                           seen, kMoving, std::memory_order_seq_cst)) {
      continue;
    }
    victims[moving++] = victims[k];
  }
  briefly_.Observe();
  kept_.Observe();
  size_t claimed = 0;
  for (size_t k = 0; k < moving; ++k) {
    const Place place = victims[k];
    if (MayBeHeld(*entry(place))) {
      word(handle(place))
          ->store(kInFastTier | place, std::memory_order_release);
    } else {
      victims[claimed++] = place;
    }
  }
  return claimed;
}

// Moves the rows of claimed places to the file. The first places, as many as
// are returned, have no row afterwards and belong to the caller. The others are
// unchanged.
size_t TieredRows::WriteOut(Span<Place> places, bool is_reserved,
                            Status* status) {
  RecordWrite writes[kEvictAtOnce];
  const auto handle = [this](Place place) {
    return handle_of(place)->load(std::memory_order_relaxed);
  };
  // Rows whose contents the file still has come first.
  size_t clean = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    if (entry(places[i])->record.load() != kNoRecord) {
      std::swap(places[clean++], places[i]);
    }
  }
  const size_t changed = places.size() - clean;
  for (size_t i = 0; i < changed; ++i) {
    const Place place = places[clean + i];
    writes[i].handle = handle(place);
    writes[i].rank = UseRanks::Kept(entry(place)->rank);
    writes[i].row = row(place);
  }
  size_t written = 0;
  *status =
      file_->Append(Span<RecordWrite>(writes, changed), is_reserved, &written);
  for (size_t i = 0; i < clean + written; ++i) {
    const RecordNumber record =
        i < clean ? entry(places[i])->record.load() : writes[i - clean].record;
    word(handle(places[i]))->store(record + 1, std::memory_order_release);
    handle_of(places[i])->store(kNoRow, std::memory_order_relaxed);
  }
  for (size_t i = clean + written; i < places.size(); ++i) {
    word(handle(places[i]))
        ->store(kInFastTier | places[i], std::memory_order_release);
  }
  evicted_.fetch_add(clean + written, std::memory_order_relaxed);
  return clean + written;
}

}  // namespace ev

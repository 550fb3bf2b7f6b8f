// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Chooses which rows leave the faster memory: a hand that goes round the
// places. Of some times as many rows as are wanted, all of which may go as
// UseRanks says, the least worth are the victims. So a row that is used once
// makes way before one that is used often, whichever came last.

#ifndef KERNELS_ENGINE_STORAGE_TIERED_VICTIM_HAND_H_
#define KERNELS_ENGINE_STORAGE_TIERED_VICTIM_HAND_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/engine/storage/tiered/use_ranks.h"

namespace ev {

// Not thread-safe; uses of rows may go on meanwhile.
class VictimHand {
 public:
  using Place = uint32_t;

  // candidates_each: rows that are compared for each that is wanted. 'ranks'
  // outlives this.
  VictimHand(const UseRanks* ranks, size_t candidates_each)
      : ranks_(ranks), candidates_each_(candidates_each) {}

  // Choose does not throw for so many rows.
  void Reserve(size_t wanted) {
    candidates_.resize(std::max(candidates_.size(), wanted * candidates_each_));
  }

  // Chooses up to 'wanted' of the places below 'places' and returns how many.
  // idle_rank(place) gives the rank of its row, or null if the row must stay.
  // A place may be chosen twice when the hand has gone round. The cost is that
  // of the places that the hand meets: twice all of them at most. Throws
  // std::bad_alloc.
  template <typename IdleRank>
  size_t Choose(int64_t places, size_t wanted, const IdleRank& idle_rank,
                Place* victims) {
    Reserve(wanted);
    const size_t most = wanted * candidates_each_;
    Candidate* const candidates = candidates_.data();
    size_t count = 0;
    // Twice round at most: the first time all may have been used.
    for (int64_t met = 0;
         count < most && met < 2 * places && (met < places || count == 0);
         ++met) {
      if (next_ >= places) next_ = 0;
      const Place place = static_cast<Place>(next_++);
      TierRank* const rank = idle_rank(place);
      uint32_t worth;
      if (rank != nullptr && ranks_->Visit(rank, &worth)) {
        candidates[count++] = Candidate{worth, place};
      }
    }
    const size_t chosen = std::min(wanted, count);
    if (chosen < count) {
      std::nth_element(candidates, candidates + (chosen - 1),
                       candidates + count);
    }
    for (size_t k = 0; k < chosen; ++k) victims[k] = candidates[k].place;
    return chosen;
  }

  // Back to the first place.
  void Reset() { next_ = 0; }

 private:
  struct Candidate {
    uint32_t worth;
    Place place;
    bool operator<(const Candidate& other) const {
      return worth != other.worth ? worth < other.worth : place < other.place;
    }
  };

  const UseRanks* const ranks_;
  const size_t candidates_each_;
  int64_t next_ = 0;
  std::vector<Candidate> candidates_;  // of one call
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_TIERED_VICTIM_HAND_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Chooses rows to evict from the faster memory, by a clock hand that goes round
// the places. It collects several times as many candidates as needed, all of
// which UseRanks allows to leave, and evicts those worth least. So a row used
// once leaves before a row used often, whichever came last.

#ifndef KERNELS_ENGINE_STORAGE_TIERED_VICTIM_HAND_H_
#define KERNELS_ENGINE_STORAGE_TIERED_VICTIM_HAND_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/engine/storage/tiered/use_ranks.h"

namespace ev {

// Not thread-safe. Rows may be used meanwhile.
class VictimHand {
 public:
  using Place = uint32_t;

  // candidates_each: candidates to compare per victim. 'ranks' must outlive
  // this object.
  VictimHand(const UseRanks* ranks, size_t candidates_each)
      : ranks_(ranks), candidates_each_(candidates_each) {}

  // Allocates memory, so that Choose does not throw for up to that many rows.
  void Reserve(size_t wanted) {
    candidates_.resize(std::max(candidates_.size(), wanted * candidates_each_));
  }

  // Chooses victims among the places below 'places', up to the requested
  // number, and returns how many. idle_rank(place) returns the rank of the
  // place's row, or null if the row must stay. A place may be chosen twice if
  // the hand goes round. The cost is that of the places the hand visits: at
  // most twice all of them. Throws std::bad_alloc.
  template <typename IdleRank>
  size_t Choose(int64_t places, size_t wanted, const IdleRank& idle_rank,
                Place* victims) {
    Reserve(wanted);
    const size_t most = wanted * candidates_each_;
    Candidate* const candidates = candidates_.data();
    size_t count = 0;
    // At most two rounds: in the first one all rows may have been used.
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

  // Moves the hand to the first place.
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

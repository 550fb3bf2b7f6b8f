// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Chooses rows to evict from the faster memory, by a clock hand that goes round
// the cache slots. It collects several times as many candidates as needed, all
// of which UseRanks allows to leave, and evicts those worth least. So a row
// used once leaves before a row used often, whichever came last.

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
  using CacheSlot = uint32_t;

  // candidates_each: candidates to compare per victim. 'ranks' must outlive
  // this object.
  VictimHand(const UseRanks* ranks, size_t candidates_each)
      : ranks_(ranks), candidates_each_(candidates_each) {}

  // Allocates memory, so that Choose does not throw for up to that many rows.
  void Reserve(size_t wanted) {
    candidates_.resize(std::max(candidates_.size(), wanted * candidates_each_));
  }

  // Chooses victims among the cache slots below 'cache_slots', up to the
  // requested number, and returns how many. idle_rank(cache_slot) returns the
  // rank of the cache slot's row, or null if the row must stay. A cache slot
  // may be chosen twice if the hand goes round. The cost is that of the cache
  // slots the hand visits: at most twice all of them. Throws std::bad_alloc.
  template <typename IdleRank>
  size_t Choose(int64_t cache_slots, size_t wanted, const IdleRank& idle_rank,
                CacheSlot* victims) {
    Reserve(wanted);
    const size_t most = wanted * candidates_each_;
    Candidate* const candidates = candidates_.data();
    size_t count = 0;
    // At most two rounds: in the first one all rows may have been used.
    for (int64_t met = 0; count < most && met < 2 * cache_slots &&
                          (met < cache_slots || count == 0);
         ++met) {
      if (next_ >= cache_slots) next_ = 0;
      const CacheSlot cache_slot = static_cast<CacheSlot>(next_++);
      TierRank* const rank = idle_rank(cache_slot);
      uint32_t worth;
      if (rank != nullptr && ranks_->Visit(rank, &worth)) {
        candidates[count++] = Candidate{worth, cache_slot};
      }
    }
    const size_t chosen = std::min(wanted, count);
    if (chosen < count) {
      std::nth_element(candidates, candidates + (chosen - 1),
                       candidates + count);
    }
    for (size_t k = 0; k < chosen; ++k) victims[k] = candidates[k].cache_slot;
    return chosen;
  }

  // Moves the hand to the first cache slot.
  void Reset() { next_ = 0; }

 private:
  struct Candidate {
    uint32_t worth;
    CacheSlot cache_slot;
    bool operator<(const Candidate& other) const {
      return worth != other.worth ? worth < other.worth
                                  : cache_slot < other.cache_slot;
    }
  };

  const UseRanks* const ranks_;
  const size_t candidates_each_;
  int64_t next_ = 0;
  std::vector<Candidate> candidates_;  // of one call
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_TIERED_VICTIM_HAND_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Ranks rows in the faster memory by how much they deserve their place. The
// rank of a row is one integer (policy/tier_rank.h) that the cache strategy
// updates (policy/cache_strategy.h). victim_hand.h chooses rows by rank.

#ifndef KERNELS_ENGINE_STORAGE_TIERED_USE_RANKS_H_
#define KERNELS_ENGINE_STORAGE_TIERED_USE_RANKS_H_

#include <atomic>
#include <cstdint>

#include "kernels/engine/policy/cache_strategy.h"

namespace ev {

// Thread-safe.
class UseRanks {
 public:
  // now: the first time.
  explicit UseRanks(CacheStrategy strategy, uint32_t now = 0)
      : strategy_(strategy), now_(now) {}

  // Advances the time. Call it before a group of uses.
  void Advance(uint32_t by = 1) {
    now_.fetch_add(by, std::memory_order_relaxed);
  }
  // Times wrap around. Returns whether the caller must call Age for each of its
  // ranks now, so that the oldest does not become the newest. Call it after
  // Advance. last: the time when it last returned true.
  bool IsTimeToAge(std::atomic<uint32_t>* last) const {
    uint32_t before = last->load(std::memory_order_relaxed);
    return now() - before >= kTimesPerAging &&
           last->compare_exchange_strong(before, now());
  }
  void Age(TierRank* rank) const {
    VisitCacheStrategy(strategy_, [&](auto strategy) {
      decltype(strategy)::Age(rank, now());
    });
  }
  // The row was moved to the faster memory and is used. brought: the result of
  // Kept when it left, or 0.
  void Arrive(TierRank* rank, uint32_t brought) const {
    VisitCacheStrategy(strategy_, [&](auto strategy) {
      decltype(strategy)::Arrive(rank, brought, now());
    });
  }
  // Records a use of the row. Of concurrent uses some may not be counted.
  void Use(TierRank* rank) const {
    VisitCacheStrategy(strategy_, [&](auto strategy) {
      decltype(strategy)::Use(rank, now());
    });
  }
  // Returns the part of the rank that is stored with a row in the slower
  // memory.
  static uint32_t Kept(const TierRank& rank) {
    return rank.load(std::memory_order_relaxed) & kTierRankBits;
  }

  // Called when the hand is at the row. Returns whether the row may leave, and
  // sets *worth, which is comparable only within one round.
  bool Visit(TierRank* rank, uint32_t* worth) const {
    return VisitCacheStrategy(strategy_, [&](auto strategy) {
      return decltype(strategy)::Visit(rank, now(), worth);
    });
  }

 private:
  uint32_t now() const { return now_.load(std::memory_order_relaxed); }

  const CacheStrategy strategy_;
  std::atomic<uint32_t> now_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_TIERED_USE_RANKS_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Ranks rows in the faster memory by how much they deserve their place. The
// rank of a row is one word (policy/tier_rank.h) that the cache strategy
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
  explicit UseRanks(CacheStrategy strategy) : strategy_(strategy) {}

  // Advances the time. Call it before a group of uses.
  void Advance() { now_.fetch_add(1, std::memory_order_relaxed); }
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
  std::atomic<uint32_t> now_{0};
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_TIERED_USE_RANKS_H_

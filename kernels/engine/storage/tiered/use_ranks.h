// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Which rows of a faster memory are worth their place: the rank of each, one
// word (policy/tier_rank.h), kept as a cache strategy says
// (policy/cache_strategy.h). victim_hand.h chooses by it.

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

  // Some rows are going to be used.
  void Advance() { now_.fetch_add(1, std::memory_order_relaxed); }
  // The row came to the faster memory and is used. brought: what Kept gave when
  // it left, or 0.
  void Arrive(TierRank* rank, uint32_t brought) const {
    VisitCacheStrategy(strategy_, [&](auto strategy) {
      decltype(strategy)::Arrive(rank, brought, now());
    });
  }
  // The row was used. One that is used at the same time may lose its count.
  void Use(TierRank* rank) const {
    VisitCacheStrategy(strategy_, [&](auto strategy) {
      decltype(strategy)::Use(rank, now());
    });
  }
  // What a row takes with it to the slower memory, and comes back with.
  static uint32_t Kept(const TierRank& rank) {
    return rank.load(std::memory_order_relaxed) & kTierRankBits;
  }

  // The hand is at the row. Whether it may go, and how much it is worth; only
  // those of one round are to be compared.
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

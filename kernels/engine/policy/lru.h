// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// LRU: evicts the row that was updated longest ago. cache_strategy.h documents
// the members.

#ifndef KERNELS_ENGINE_POLICY_LRU_H_
#define KERNELS_ENGINE_POLICY_LRU_H_

#include <cstdint>

#include "kernels/engine/policy/eviction_rank.h"
#include "kernels/engine/policy/tier_rank.h"

namespace ev {

struct LruStrategy {
  static constexpr const char* kName = "LRU";
  static constexpr bool kNeedsFrequency = false;
  static constexpr bool kKeepsFirstCall = false;

  // Orders by version, then by call.
  static EvictionRank Rank(const RowHistory& row, const UpdateCall& now,
                           uint64_t hash) {
    return {SparedBits(row, now, /*spares_step=*/false), ByVersion(row),
            ByCall(row, now), hash};
  }

  static void Arrive(TierRank* rank, uint32_t, uint32_t now) { Use(rank, now); }
  static void Use(TierRank* rank, uint32_t now) {
    rank->store(now | kUsedSinceVisit, std::memory_order_relaxed);
  }
  static void Age(TierRank* rank, uint32_t now) { LimitAge(rank, now); }
  // Passes over a row once if it was used since the last visit.
  static bool Visit(TierRank* rank, uint32_t now, uint32_t* worth) {
    const uint32_t seen = rank->load(std::memory_order_relaxed);
    const uint32_t last_use = seen & kTierRankBits;
    if (seen & kUsedSinceVisit) {
      rank->store(last_use, std::memory_order_relaxed);
    }
    *worth = WorthByTime(last_use, now);
    return (seen & kUsedSinceVisit) == 0;
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_POLICY_LRU_H_

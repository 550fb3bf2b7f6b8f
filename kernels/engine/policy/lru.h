// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// LRU: the row that was updated longest ago goes first. cache_strategy.h says
// what each member is for.

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

  // By version; of equal versions the row of the earlier call goes first.
  static EvictionRank Rank(const RowHistory& row, const UpdateCall& now,
                           uint64_t hash) {
    return {SparedBits(row, now, /*spares_step=*/false), ByVersion(row),
            ByCall(row, now), hash};
  }

  static void Arrive(TierRank* rank, uint32_t, uint32_t now) { Use(rank, now); }
  static void Use(TierRank* rank, uint32_t now) {
    rank->store(now | kUsedSinceVisit, std::memory_order_relaxed);
  }
  // A row that was used since the last visit is passed over once.
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

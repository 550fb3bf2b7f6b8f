// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// FIFO: evicts the row that was inserted first; a use does not make it younger.
// cache_strategy.h documents the members.

#ifndef KERNELS_ENGINE_POLICY_FIFO_H_
#define KERNELS_ENGINE_POLICY_FIFO_H_

#include <cstdint>

#include "kernels/engine/policy/eviction_rank.h"
#include "kernels/engine/policy/tier_rank.h"

namespace ev {

struct FifoStrategy {
  static constexpr const char* kName = "FIFO";
  static constexpr bool kNeedsFrequency = false;
  static constexpr bool kKeepsFirstCall = true;

  // Orders by the call that inserted the row, then by version. The row's call
  // does not show whether the evicting call has updated the row; its version
  // does, so rows of the call's step are spared.
  static EvictionRank Rank(const RowHistory& row, const UpdateCall& now,
                           uint64_t hash) {
    return {SparedBits(row, now, /*spares_step=*/true) | ByCall(row, now),
            ByVersion(row), /*third=*/0, hash};
  }

  // In a faster tier, rows are ordered by when they arrived in it. By the time
  // of insertion, a row that returns from the slower tier would be the next to
  // leave again.
  static void Arrive(TierRank* rank, uint32_t, uint32_t now) {
    rank->store(now & kTierRankBits, std::memory_order_relaxed);
  }
  static void Use(TierRank*, uint32_t) {}
  static void Age(TierRank* rank, uint32_t now) { LimitAge(rank, now); }
  static bool Visit(TierRank* rank, uint32_t now, uint32_t* worth) {
    *worth = WorthByTime(rank->load(std::memory_order_relaxed), now);
    return true;
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_POLICY_FIFO_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// LFU: evicts the row that occurred least often. cache_strategy.h documents the
// members.

#ifndef KERNELS_ENGINE_POLICY_LFU_H_
#define KERNELS_ENGINE_POLICY_LFU_H_

#include <cstdint>

#include "kernels/engine/policy/eviction_rank.h"
#include "kernels/engine/policy/tier_rank.h"

namespace ev {

struct LfuStrategy {
  static constexpr const char* kName = "LFU";
  static constexpr bool kNeedsFrequency = true;
  static constexpr bool kKeepsFirstCall = false;

  // Orders by frequency, then version, then call. Rows of the evicting call's
  // step go after all others: a new row could otherwise never stay.
  static EvictionRank Rank(const RowHistory& row, const UpdateCall& now,
                           uint64_t hash) {
    return {SparedBits(row, now, /*spares_step=*/true) | row.frequency,
            ByVersion(row), ByCall(row, now), hash};
  }

  // In a faster tier a use counts 1024, and each visit of the hand takes a 64th
  // off the count (docs/design/0009-rows-on-ssd.md explains why a 64th). Among
  // rows used once, the one used longest ago therefore goes first. A row keeps
  // its count while it is in the slower tier.
  static void Arrive(TierRank* rank, uint32_t brought, uint32_t now) {
    rank->store(brought, std::memory_order_relaxed);
    Use(rank, now);
  }
  static void Use(TierRank* rank, uint32_t) {
    uint32_t uses = rank->load(std::memory_order_relaxed) & kTierRankBits;
    uses = (uses < kMostUses ? uses : +kMostUses) + kUse;
    rank->store(uses | kUsedSinceVisit, std::memory_order_relaxed);
  }
  static void Age(TierRank*, uint32_t) {}  // has no times
  // Passes over a row once if it was used since the last visit.
  static bool Visit(TierRank* rank, uint32_t, uint32_t* worth) {
    const uint32_t seen = rank->load(std::memory_order_relaxed);
    uint32_t uses = seen & kTierRankBits;
    uses -= uses / kFading;
    rank->store(uses, std::memory_order_relaxed);
    *worth = uses;
    return (seen & kUsedSinceVisit) == 0;
  }

 private:
  static constexpr uint32_t kUse = 1024;
  static constexpr uint32_t kFading = 64;
  static constexpr uint32_t kMostUses = kTierRankBits - kUse;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_POLICY_LFU_H_

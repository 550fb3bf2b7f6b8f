// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// FIFO: the row that came first goes first; a use does not make it younger.
// cache_strategy.h says what each member is for.

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

  // By the call that gave the row to the table; of the rows of one call the one
  // that was updated longest ago goes first. A row's call does not tell whether
  // the evicting call has updated it too; its step does.
  static EvictionRank Rank(const RowHistory& row, const UpdateCall& now,
                           uint64_t hash) {
    return {SparedBits(row, now, /*spares_step=*/true) | ByCall(row, now),
            ByVersion(row), /*third=*/0, hash};
  }

  // In a faster memory, by the time at which the row came there: one that comes
  // back from the slower memory would otherwise be the next to leave again.
  static void Arrive(TierRank* rank, uint32_t, uint32_t now) {
    rank->store(now & kTierRankBits, std::memory_order_relaxed);
  }
  static void Use(TierRank*, uint32_t) {}
  static bool Visit(TierRank* rank, uint32_t now, uint32_t* worth) {
    *worth = WorthByTime(rank->load(std::memory_order_relaxed), now);
    return true;
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_POLICY_FIFO_H_

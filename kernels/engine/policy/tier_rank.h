// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rank of a row in the faster tier of a table in two memories, as one word. The
// top bit is set if the row was used since the hand's last visit
// (storage/tiered/victim_hand.h); the strategy defines the other 31 bits. Times
// count the calls that use rows, and wrap.

#ifndef KERNELS_ENGINE_POLICY_TIER_RANK_H_
#define KERNELS_ENGINE_POLICY_TIER_RANK_H_

#include <atomic>
#include <cstdint>

namespace ev {

using TierRank = std::atomic<uint32_t>;

constexpr uint32_t kUsedSinceVisit = 0x80000000u;
constexpr uint32_t kTierRankBits = ~kUsedSinceVisit;

// Returns the worth of a row that was last used at 'time': the older, the less.
inline uint32_t WorthByTime(uint32_t time, uint32_t now) {
  return kTierRankBits - ((now - time) & kTierRankBits);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_POLICY_TIER_RANK_H_

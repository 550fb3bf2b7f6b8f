// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The rank of a row in the faster of two memories: one word, of which the top
// bit says that the row was used since the hand was there
// (storage/tiered/victim_hand.h), and the other 31 are the strategy's. Times
// count the calls that use rows, and wrap.

#ifndef KERNELS_ENGINE_POLICY_TIER_RANK_H_
#define KERNELS_ENGINE_POLICY_TIER_RANK_H_

#include <atomic>
#include <cstdint>

namespace ev {

using TierRank = std::atomic<uint32_t>;

constexpr uint32_t kUsedSinceVisit = 0x80000000u;
constexpr uint32_t kTierRankBits = ~kUsedSinceVisit;

// How much a row is worth by a time: the less, the farther back the time is.
inline uint32_t WorthByTime(uint32_t time, uint32_t now) {
  return kTierRankBits - ((now - time) & kTierRankBits);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_POLICY_TIER_RANK_H_

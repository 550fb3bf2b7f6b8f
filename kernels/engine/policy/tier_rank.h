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

// LimitAge must be called for every rank once in that many times.
constexpr uint32_t kTimesPerAging = uint32_t{1} << 29;

// Returns the age of a row that was last used at 'time'. It is 0 for times
// ahead of 'now', which another thread has advanced meanwhile.
inline uint32_t AgeByTime(uint32_t time, uint32_t now) {
  constexpr uint32_t kLeastAhead = kTierRankBits - (uint32_t{1} << 28);
  const uint32_t age = (now - time) & kTierRankBits;
  return age < kLeastAhead ? age : 0;
}

// Returns the worth of a row that was last used at 'time': the older, the less.
inline uint32_t WorthByTime(uint32_t time, uint32_t now) {
  return kTierRankBits - AgeByTime(time, now);
}

// Makes a row that is older than 2^30 times that old, so that its age does not
// wrap until the next call.
inline void LimitAge(TierRank* rank, uint32_t now) {
  constexpr uint32_t kMostAge = uint32_t{1} << 30;
  uint32_t seen = rank->load(std::memory_order_relaxed);
  if (AgeByTime(seen, now) <= kMostAge) return;
  // Fails if the row is used meanwhile.
  rank->compare_exchange_strong(
      seen, (seen & kUsedSinceVisit) | ((now - kMostAge) & kTierRankBits),
      std::memory_order_relaxed);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_POLICY_TIER_RANK_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// List of all cache strategies. A strategy decides which rows are evicted when
// a table exceeds its capacity, and which rows leave the faster tier of a table
// in two memories. Each strategy is a struct in a file of its own (lru.h,
// lfu.h, fifo.h) with these members:
//
//   kName            name in options and op attributes
//   kNeedsFrequency  whether rows must count their occurrences
//   kKeepsFirstCall  whether a row keeps the number of the call that inserted
//                    it; if not, it keeps that of the call that last updated it
//   Rank             rank of a row in a full table; the lowest is evicted first
//
// and these for rows in the faster tier (tier_rank.h):
//
//   Arrive  called when a row enters the tier, which counts as a use. 'brought'
//           is the rank that the row had when it left the tier, 0 if it is new.
//   Use     called when a row in the tier is used again.
//   Age     called now and then for every row in the tier, since times wrap.
//   Visit   called when the eviction hand (storage/tiered/victim_hand.h), a
//           clock hand, reaches a row. Returns whether the row may leave, and
//           sets *worth. Among the rows that one search visits and that may
//           leave, those with the least worth do.
//
// All functions are static and have no state except their arguments; Arrive,
// Use and Visit update the row's TierRank. Several threads may call them on one
// rank at once; a use may be lost then.

#ifndef KERNELS_ENGINE_POLICY_CACHE_STRATEGY_H_
#define KERNELS_ENGINE_POLICY_CACHE_STRATEGY_H_

#include <cstdint>
#include <string>

#include "kernels/engine/policy/eviction_rank.h"
#include "kernels/engine/policy/fifo.h"
#include "kernels/engine/policy/lfu.h"
#include "kernels/engine/policy/lru.h"

namespace ev {

enum class CacheStrategy {
  kLru,
  kLfu,
  kFifo,
};
constexpr CacheStrategy kCacheStrategies[] = {
    CacheStrategy::kLru, CacheStrategy::kLfu, CacheStrategy::kFifo};

// Returns visitor(S()), where S is the struct of the strategy. Always inlined:
// a call per row that the hand visits would cost as much as the visit itself.
template <typename Visitor>
inline __attribute__((always_inline)) auto VisitCacheStrategy(
    CacheStrategy strategy, Visitor&& visitor) {
  switch (strategy) {
    case CacheStrategy::kLru:
      return visitor(LruStrategy());
    case CacheStrategy::kLfu:
      return visitor(LfuStrategy());
    case CacheStrategy::kFifo:
      return visitor(FifoStrategy());
  }
  __builtin_unreachable();
}

inline const char* CacheStrategyName(CacheStrategy strategy) {
  return VisitCacheStrategy(strategy,
                            [](auto s) { return decltype(s)::kName; });
}

// Finds a strategy by its name. Returns false and leaves *strategy unchanged if
// there is none.
inline bool FindCacheStrategy(const std::string& name,
                              CacheStrategy* strategy) {
  for (const CacheStrategy each : kCacheStrategies) {
    if (name != CacheStrategyName(each)) continue;
    *strategy = each;
    return true;
  }
  return false;
}

inline bool NeedsFrequency(CacheStrategy strategy) {
  return VisitCacheStrategy(
      strategy, [](auto s) { return decltype(s)::kNeedsFrequency; });
}

inline bool KeepsFirstCall(CacheStrategy strategy) {
  return VisitCacheStrategy(
      strategy, [](auto s) { return decltype(s)::kKeepsFirstCall; });
}

// Returns the call number to store in a row that has 'kept', when call number
// 'call' updates it.
inline uint32_t CallToKeep(CacheStrategy strategy, uint32_t kept,
                           uint32_t call) {
  return kept != 0 && KeepsFirstCall(strategy) ? kept : call;
}

inline EvictionRank RankOf(CacheStrategy strategy, const RowHistory& row,
                           const UpdateCall& now, uint64_t hash) {
  return VisitCacheStrategy(
      strategy, [&](auto s) { return decltype(s)::Rank(row, now, hash); });
}

}  // namespace ev

#endif  // KERNELS_ENGINE_POLICY_CACHE_STRATEGY_H_

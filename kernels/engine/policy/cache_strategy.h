// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// All cache strategies: which rows go when a table is over its capacity, and
// which rows leave the faster of two memories. The one list; a strategy is a
// file of its own (lru.h, lfu.h, fifo.h) with
//
//   kName            the name that options and op attributes have
//   kNeedsFrequency  rows have to count their occurrences
//   kKeepsFirstCall  a row keeps the number of the call that gave it to the
//                    table, else that of the call that updated it last
//   Rank             a row's rank in a full table; the lowest goes first
//
// and, of the rows in the faster memory (tier_rank.h),
//
//   Arrive  a row came there and is used; brought: the rank that it left with,
//           0 if it is new
//   Use     a row there is used again
//   Visit   the hand is at the row: whether it may go, and what it is worth;
//           of some rows visited one after the other the least worth go
//
// All are functions of their arguments. Several threads may call Arrive, Use
// and Visit with one rank at once: a use may be lost then.

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

// visitor(S()), S the class of the strategy. Always inlined: a call for each
// row that a hand meets would cost as much as the visit.
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

// False, and *strategy is as it was: no strategy has this name.
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

// The call that a row keeps which has 'kept' and is updated by 'call'.
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

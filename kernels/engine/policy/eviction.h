// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Which rows go, as decisions on what a row counts about itself. A version is
// the global step of a row's last update, -1 when it never had one.

#ifndef KERNELS_ENGINE_POLICY_EVICTION_H_
#define KERNELS_ENGINE_POLICY_EVICTION_H_

#include <cstdint>
#include <tuple>

namespace ev {

enum class CacheStrategy {
  kLru,  // the row that was updated longest ago goes first
  kLfu,  // the row that occurred least often goes first
};

// How many rows a table may hold; 0: no bound. Both given: the smaller counts.
struct CapacityOptions {
  int64_t max_rows = 0;
  int64_t max_bytes = 0;  // of rows, slots, meta and index
  CacheStrategy strategy = CacheStrategy::kLfu;

  bool bounded() const { return max_rows > 0 || max_bytes > 0; }
};

inline bool operator==(const CapacityOptions& a, const CapacityOptions& b) {
  return a.max_rows == b.max_rows && a.max_bytes == b.max_bytes &&
         a.strategy == b.strategy;
}

// Nothing updated the row for more than steps_to_live steps. Any int64 is a
// step.
inline bool IsStale(int64_t version, int64_t step, int64_t steps_to_live) {
  return step > version &&
         static_cast<uint64_t>(step) - static_cast<uint64_t>(version) >
             static_cast<uint64_t>(steps_to_live);
}

// In this order wherever the row is, so that every memory evicts the same rows.
inline double SumOfSquares(const float* row, int64_t dim) {
  double squares = 0.0;
  for (int64_t c = 0; c < dim; ++c) {
    squares += static_cast<double>(row[c]) * row[c];
  }
  return squares;
}

// Half of the sum of a row's squares is below the threshold; not so for NaN.
inline bool IsWeak(double squares, float threshold) {
  return 0.5 * squares < threshold;
}

// A call that updates rows, and evicts those that are then too many.
struct UpdateCall {
  uint32_t call = 0;  // its number in the table; 0: of none that updates
  int64_t step = -1;  // global step of the update; -1: none
  // Steps are no steps but the time of each call: rows of one time are not of
  // one step.
  bool steps_are_times = false;
};

// Whether the row was updated by this call, or by one that began after it:
// calls that are under way at once evict one after the other.
inline bool IsOfCall(uint32_t call, const UpdateCall& now) {
  constexpr uint32_t kCallsAtOnce = 1 << 16;
  return call != 0 && now.call != 0 && call - now.call < kCallsAtOnce;
}

// Rows with a smaller rank go first. A rank is unique in a table, since hashes
// of distinct keys are: what goes does not depend on where rows lie.
struct EvictionRank {
  // Rows of this call go last, before them those of its step among the least
  // frequent: a newcomer could otherwise never stay. Then the frequency.
  uint64_t spared_and_frequency;
  uint64_t age;   // by version
  uint64_t call;  // of equal versions, the call that was earlier goes first
  uint64_t hash;

  // Whether the row is of the call that evicts.
  bool is_of_call() const { return spared_and_frequency >> 62 == 2; }
};
inline bool operator<(const EvictionRank& a, const EvictionRank& b) {
  return std::tie(a.spared_and_frequency, a.age, a.call, a.hash) <
         std::tie(b.spared_and_frequency, b.age, b.call, b.hash);
}

// call: of the row's last update, as RowMeta has it.
inline EvictionRank RankOf(CacheStrategy strategy, uint32_t frequency,
                           int64_t version, uint32_t call,
                           const UpdateCall& now, uint64_t hash) {
  EvictionRank rank;
  uint64_t spared = 0;
  if (IsOfCall(call, now)) {
    spared = 2;
  } else if (strategy == CacheStrategy::kLfu && !now.steps_are_times &&
             version >= 0 && version == now.step) {
    spared = 1;
  }
  rank.spared_and_frequency =
      spared << 62 | (strategy == CacheStrategy::kLfu ? frequency : 0);
  rank.age = static_cast<uint64_t>(version) + 1;
  // By how far back the call is, since numbers wrap. A row that no call updated
  // goes before all others.
  constexpr uint64_t kNow = uint64_t{1} << 32;
  if (call == 0) {
    rank.call = 0;
  } else if (IsOfCall(call, now)) {
    rank.call = kNow + (call - now.call);
  } else {
    rank.call = kNow - static_cast<uint32_t>(now.call - call);
  }
  rank.hash = hash;
  return rank;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_POLICY_EVICTION_H_

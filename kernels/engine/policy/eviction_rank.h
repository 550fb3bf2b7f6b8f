// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The order in which a full table evicts rows: the history of a row, and the
// rank that a cache strategy computes from it.

#ifndef KERNELS_ENGINE_POLICY_EVICTION_RANK_H_
#define KERNELS_ENGINE_POLICY_EVICTION_RANK_H_

#include <cstdint>
#include <tuple>

namespace ev {

// The metadata of a row from which strategies compute its rank.
struct RowHistory {
  int64_t version = -1;    // global step of the last update; -1: no update
  uint32_t frequency = 0;  // occurrences in training batches
  // Number of the call that CallToKeep returned; 0: none. A table numbers its
  // calls from 1.
  uint32_t call = 0;
};

// A call that updates rows and then evicts the surplus.
struct UpdateCall {
  uint32_t call = 0;  // its number in the table; 0: it updates nothing
  int64_t step = -1;  // global step of the update; -1: none
  // Versions are timestamps, not step numbers: rows with equal versions need
  // not belong to one step.
  bool steps_are_times = false;
};

// Returns whether a row belongs to the evicting call or to one that began after
// it. Calls in flight at the same time evict one after the other.
inline bool IsOfCall(uint32_t call, const UpdateCall& now) {
  constexpr uint32_t kCallsAtOnce = 1 << 16;
  return call != 0 && now.call != 0 && call - now.call < kCallsAtOnce;
}

// Rows with a smaller rank are evicted first. Ranks are unique in a table
// because hashes of distinct keys are, so the choice does not depend on where
// rows are stored.
struct EvictionRank {
  // The top two bits are kOfCall, kOfStep or kNotSpared: rows of the evicting
  // call or step are spared. The other 62 bits are the number that the strategy
  // compares first.
  uint64_t spared_and_first;
  uint64_t second, third;  // numbers that the strategy compares next
  uint64_t hash;           // of the key

  static constexpr uint64_t kNotSpared = 0;
  static constexpr uint64_t kOfStep = uint64_t{1} << 62;
  static constexpr uint64_t kOfCall = uint64_t{2} << 62;

  // Whether the row belongs to the evicting call.
  bool is_of_call() const { return spared_and_first >> 62 == 2; }
};
inline bool operator<(const EvictionRank& a, const EvictionRank& b) {
  return std::tie(a.spared_and_first, a.second, a.third, a.hash) <
         std::tie(b.spared_and_first, b.second, b.third, b.hash);
}

// Numbers from which strategies form ranks. Rows with smaller ones go first.

// Returns the top two bits of a row's rank. With spares_step, rows of the
// evicting call's step go after all others except the call's own rows.
inline uint64_t SparedBits(const RowHistory& row, const UpdateCall& now,
                           bool spares_step) {
  if (IsOfCall(row.call, now)) return EvictionRank::kOfCall;
  if (spares_step && !now.steps_are_times && row.version >= 0 &&
      row.version == now.step) {
    return EvictionRank::kOfStep;
  }
  return EvictionRank::kNotSpared;
}

inline uint64_t ByVersion(const RowHistory& row) {
  return static_cast<uint64_t>(row.version) + 1;
}

// Orders rows by the age of their call, so that call numbers may wrap; below
// 2^33. A row without a call goes before all others.
inline uint64_t ByCall(const RowHistory& row, const UpdateCall& now) {
  constexpr uint64_t kNow = uint64_t{1} << 32;
  if (row.call == 0) return 0;
  if (IsOfCall(row.call, now)) return kNow + (row.call - now.call);
  return kNow - static_cast<uint32_t>(now.call - row.call);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_POLICY_EVICTION_RANK_H_

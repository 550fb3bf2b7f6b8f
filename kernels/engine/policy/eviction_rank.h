// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The order in which a full table gives up its rows: what a row knows about
// itself, and the rank that a cache strategy makes of it.

#ifndef KERNELS_ENGINE_POLICY_EVICTION_RANK_H_
#define KERNELS_ENGINE_POLICY_EVICTION_RANK_H_

#include <cstdint>
#include <tuple>

namespace ev {

// What a row has recorded about itself.
struct RowHistory {
  int64_t version = -1;    // global step of the last update; -1: no update
  uint32_t frequency = 0;  // occurrences in training batches
  // Number of the call that the strategy's CallToKeep chose; 0: none. Calls of
  // one table are numbered from 1 on.
  uint32_t call = 0;
};

// A call that updates rows, and evicts those that are then too many.
struct UpdateCall {
  uint32_t call = 0;  // its number in the table; 0: it updates nothing
  int64_t step = -1;  // global step of the update; -1: none
  // Steps are no steps but the time of each call: rows of one time are not of
  // one step.
  bool steps_are_times = false;
};

// Whether a row's call is this call, or one that began after it: calls that
// are under way at once evict one after the other.
inline bool IsOfCall(uint32_t call, const UpdateCall& now) {
  constexpr uint32_t kCallsAtOnce = 1 << 16;
  return call != 0 && now.call != 0 && call - now.call < kCallsAtOnce;
}

// Rows with a smaller rank go first. A rank is unique in a table, since hashes
// of distinct keys are: what goes does not depend on where rows lie.
struct EvictionRank {
  // Two bits that spare a row (kOfCall, kOfStep, kNotSpared), then what the
  // strategy compares first, below 2^62.
  uint64_t spared_and_first;
  uint64_t second, third;  // what the strategy compares next
  uint64_t hash;           // of the key

  static constexpr uint64_t kNotSpared = 0;
  static constexpr uint64_t kOfStep = uint64_t{1} << 62;
  static constexpr uint64_t kOfCall = uint64_t{2} << 62;

  // Whether the row is of the call that evicts.
  bool is_of_call() const { return spared_and_first >> 62 == 2; }
};
inline bool operator<(const EvictionRank& a, const EvictionRank& b) {
  return std::tie(a.spared_and_first, a.second, a.third, a.hash) <
         std::tie(b.spared_and_first, b.second, b.third, b.hash);
}

// What strategies make ranks of; a smaller number goes first.

// The two bits of a row. spares_step: rows of the evicting call's step go after
// all others but the call's own.
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

// By how far back the row's call is, since numbers wrap; below 2^33. A row
// without a call goes before all others.
inline uint64_t ByCall(const RowHistory& row, const UpdateCall& now) {
  constexpr uint64_t kNow = uint64_t{1} << 32;
  if (row.call == 0) return 0;
  if (IsOfCall(row.call, now)) return kNow + (row.call - now.call);
  return kNow - static_cast<uint32_t>(now.call - row.call);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_POLICY_EVICTION_RANK_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Number of slots of a table and device memory of a set. Used by the set itself
// and by code that plans without a GPU.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_TABLE_SIZE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_TABLE_SIZE_H_

#include <cstdint>

#include "addons/hierarchical_parameter_server/cache/table/bucket.h"

namespace ev {
namespace gpu {

constexpr int kPairSlots = 2 * kBucketSlots;

// Number of buckets that a key may be in, unless a set's options override it.
constexpr int DefaultProbeLimit(bool evicts) {
  return evicts ? 2 : kMaxProbeLimit;
}

inline bool IsPrime(uint32_t n) {
  if (n < 4) return n > 1;
  if (n % 2 == 0) return false;
  for (uint64_t d = 3; d * d <= n; d += 2) {
    if (n % d == 0) return false;
  }
  return true;
}

// Returns a prime number of pairs, with which every chain visits every pair.
// With at most two choices no prime is needed: any step leads to another pair.
inline uint32_t PairsFor(int64_t capacity, int probe_limit) {
  int64_t pairs = (capacity + kPairSlots - 1) / kPairSlots;
  if (pairs < 2) pairs = 2;
  if (probe_limit > 2) {
    while (!IsPrime(static_cast<uint32_t>(pairs))) ++pairs;
  }
  return static_cast<uint32_t>(pairs);
}
inline int64_t SlotsFor(int64_t capacity, int probe_limit) {
  return int64_t{PairsFor(capacity, probe_limit)} * kPairSlots;
}

// Locks and marks of a set that evicts; see evict.cuh.
constexpr unsigned kNumLocks = 1u << 18;
constexpr int64_t kMinMarks = 1 << 10;
constexpr int64_t kMaxMarks = 1 << 25;  // 4 MB per set, which stay in L2
constexpr int kMarkSets = 3;
// At two bits per bucket, most buckets of different tables have their own.
inline int64_t MarksFor(int64_t buckets) {
  int64_t num_marks = kMinMarks;
  while (num_marks < 2 * buckets && num_marks < kMaxMarks) num_marks *= 2;
  return num_marks;
}
// Size of an evicting call's lists.
constexpr int64_t kScratchBytesPerKey = 73;

// Counters of keys and of rejected keys of one table, in stripes.
constexpr int64_t kCounterBytes = 2048;

// Returns the device memory of a set of one table. max_keys: the argument of
// ReserveSync.
inline int64_t IndexBytesFor(int64_t capacity, bool evicts, int64_t max_keys) {
  const int64_t slots = SlotsFor(capacity, DefaultProbeLimit(evicts));
  const int64_t fixed =
      kCounterBytes + static_cast<int64_t>(sizeof(TableView)) + 64;
  if (!evicts) return fixed + slots * 8;
  return fixed + slots * 16 + int64_t{kNumLocks} * 4 +
         kMarkSets * (MarksFor(slots / kBucketSlots) / 8) +
         (max_keys + 31) / 32 * 32 * kScratchBytesPerKey;
}

}  // namespace gpu
}  // namespace ev

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_TABLE_SIZE_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// How many slots a table has, and what device memory a set takes: written once,
// for the set that allocates and for code that plans without a GPU.

#ifndef KERNELS_ENGINE_TABLE_GPU_TABLE_SIZE_H_
#define KERNELS_ENGINE_TABLE_GPU_TABLE_SIZE_H_

#include <cstdint>

#include "kernels/engine/table/gpu/bucket.h"

namespace ev {
namespace gpu {

constexpr int kPairSlots = 2 * kBucketSlots;

// Buckets that a key may be in, unless a set's options say otherwise.
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

// A prime number of pairs lets every chain visit every pair. Two choices need
// no prime: any step leads to another pair.
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

// Locks and marks of a set that evicts; evict.cuh says what they are.
constexpr unsigned kNumLocks = 1u << 18;
constexpr int64_t kMinMarks = 1 << 10;
constexpr int64_t kMaxMarks = 1 << 25;  // 4 MB a set: they stay in L2
constexpr int kMarkSets = 3;
// Two bits a bucket keep those of different tables apart, mostly.
inline int64_t MarksFor(int64_t buckets) {
  int64_t num_marks = kMinMarks;
  while (num_marks < 2 * buckets && num_marks < kMaxMarks) num_marks *= 2;
  return num_marks;
}
// Of the lists of an evicting call.
constexpr int64_t kScratchBytesPerKey = 73;

// Sizes and rejected keys of a table, counted in stripes.
constexpr int64_t kCounterBytes = 2048;

// Device memory of a set of one table that does not grow. max_keys: what
// ReserveSync is given.
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

#endif  // KERNELS_ENGINE_TABLE_GPU_TABLE_SIZE_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Number of buckets of an index segment as its keys come and go.
//
// A slot is 64 / 5 = 12.8 bytes. A segment grows when three quarters full, by a
// quarter (by a third at most). So it is hardly ever less than 55 % full, which
// is 23 bytes per key; just before it grows it takes 17. Higher loads would
// touch more lines per find (1.14 on average at the limit, 1.05 just after
// growth), and lower ones would cost memory. A key is copied 4 times on the
// way. Growth by three eighths copies it 2.7 times; that makes an insert a
// tenth cheaper, but no step measurably faster
// (benchmarks/results/many_tables.md), and takes more memory.
//
// The hash gives all segments the same number of keys, so they would all grow
// at the same moment. Therefore each has its own limit, up to a sixteenth
// lower.
//
// Sizes above 2 MiB consist of whole huge pages where that fits. Beyond 10 MiB
// a segment splits in two instead of growing, so that no single rehash takes
// more than a few milliseconds.

#ifndef KERNELS_ENGINE_TABLE_CPU_SEGMENT_SIZE_H_
#define KERNELS_ENGINE_TABLE_CPU_SEGMENT_SIZE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/engine/base/hash.h"
#include "kernels/engine/base/pages.h"
#include "kernels/engine/table/cpu/bucket.h"

namespace ev {

constexpr uint64_t kBucketsPerHugePage = kHugePage / sizeof(Bucket);
constexpr uint64_t kMaxSegmentBuckets = 5 * kBucketsPerHugePage;
static_assert(2 * kMaxSegmentBuckets <= kCountMask, "an array fits its word");

// Returns the number of keys beyond which a segment of this many buckets grows.
// prefix: the first 'depth' bits of its keys' hashes.
inline int64_t MaxKeys(uint64_t buckets, uint64_t prefix, uint32_t depth) {
  const uint64_t keys = buckets * kSlots * 3 / 4;
  if (depth == 0) return static_cast<int64_t>(keys);
  const uint64_t lower = MixKey(static_cast<int64_t>(prefix)) >> 56;  // 0..255
  return static_cast<int64_t>(keys - keys * lower / (256 * 16));
}

// Number of keys that a segment takes if there is no memory to grow. Some slots
// stay free: the chains of the last few keys would go through the whole
// segment.
constexpr int64_t MaxKeysWithoutMemory(uint64_t buckets) {
  return static_cast<int64_t>(buckets * kSlots * 15 / 16);
}

// Rounds to the nearest count of whole huge pages if that changes little.
inline uint64_t RoundBuckets(uint64_t buckets) {
  const uint64_t whole = (buckets + kBucketsPerHugePage / 2) /
                         kBucketsPerHugePage * kBucketsPerHugePage;
  const bool near = whole * 100 >= buckets * 94 && whole * 100 <= buckets * 107;
  return near ? whole : buckets;
}

// Returns the next larger size. If it exceeds kMaxSegmentBuckets, the segment
// splits instead.
inline uint64_t GrownBuckets(uint64_t buckets) {
  if (buckets < 2) return buckets + 1;
  if (buckets < 8) return buckets + 2;
  return RoundBuckets(buckets + buckets / 4);
}

// Returns the size for each half of a segment that splits, and for a segment
// that shrinks.
inline uint64_t BucketsFor(int64_t keys) {
  // Gives a load of 62.5 %.
  return RoundBuckets(static_cast<uint64_t>(keys) * 8 / (5 * kSlots) + 1);
}

// Returns whether to shrink to BucketsFor(keys): only far below the load at
// which the segment grows again.
inline bool TooEmpty(uint64_t buckets, int64_t keys) {
  return buckets > 2 && keys * 5 < static_cast<int64_t>(buckets * kSlots * 2);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_TABLE_CPU_SEGMENT_SIZE_H_

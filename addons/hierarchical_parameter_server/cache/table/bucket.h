// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The places a key may have: its hash, its chain of buckets, and the marks of
// free slots. Shared by the kernels and by host code that tests them.
// table_set.h explains the design.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_BUCKET_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_BUCKET_H_

#include <cstdint>

#include "kernels/engine/base/host_device.h"

namespace ev {
namespace gpu {

constexpr int kBucketSlots =
    16;  // 16 int64 keys: one aligned line of 128 bytes
constexpr int kMaxProbeLimit = 16;

// A bijection of 64 bits (MurmurHash3's finaliser). Two keys never share a
// hash, so the hash also orders keys without ties, in an order that users
// cannot choose.
EV_HOST_DEVICE constexpr uint64_t MixKey(int64_t key) {
  uint64_t h = static_cast<uint64_t>(key);
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdULL;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53ULL;
  h ^= h >> 33;
  return h;
}

// Buckets are numbered 2 * pair + parity. All buckets of a key's chain have the
// parity of its hash, so an even bucket never holds a key with an odd hash.
// Such keys therefore mark its free slots, and users may store every int64.
EV_HOST_DEVICE constexpr uint32_t KeyParity(uint64_t hash) {
  return static_cast<uint32_t>(hash & 1);
}

EV_HOST_DEVICE constexpr uint32_t ScaleHash(uint32_t hash, uint32_t range) {
  return static_cast<uint32_t>((static_cast<uint64_t>(hash) * range) >> 32);
}

// Returns a key's first pair. PairStep returns the distance to its next pair: 0
// < step < num_pairs, so the first two pairs always differ.
EV_HOST_DEVICE constexpr uint32_t FirstPair(uint64_t hash, uint32_t num_pairs) {
  return ScaleHash(static_cast<uint32_t>(hash >> 32), num_pairs);
}
EV_HOST_DEVICE constexpr uint32_t PairStep(uint64_t hash, uint32_t num_pairs) {
  return 1 + ScaleHash(static_cast<uint32_t>(hash), num_pairs - 1);
}
EV_HOST_DEVICE constexpr uint32_t NextPair(uint32_t pair, uint32_t step,
                                           uint32_t num_pairs) {
  const uint32_t room = num_pairs - pair;  // avoids overflow of pair + step
  return step >= room ? step - room : pair + step;
}
EV_HOST_DEVICE constexpr uint64_t BucketOf(uint32_t pair, uint32_t parity) {
  return 2 * static_cast<uint64_t>(pair) + parity;
}

constexpr int64_t FirstKeyOfParity(int64_t from, uint32_t parity) {
  while (KeyParity(MixKey(from)) != parity) ++from;
  return from;
}

// Marks of a free slot. Empty: the bucket has never been full since the last
// clear, so no key is beyond it. Erased: the bucket has been full; keys that
// passed it may be further along their chains.
constexpr int64_t kEmptyInEven = FirstKeyOfParity(0x5eed000000000000LL, 1);
constexpr int64_t kEmptyInOdd = FirstKeyOfParity(0x5eed000000000000LL, 0);
constexpr int64_t kErasedInEven = FirstKeyOfParity(0x5eed000000010000LL, 1);
constexpr int64_t kErasedInOdd = FirstKeyOfParity(0x5eed000000010000LL, 0);

EV_HOST_DEVICE int64_t EmptyMark(uint32_t parity) {
  return parity ? kEmptyInOdd : kEmptyInEven;
}
EV_HOST_DEVICE int64_t ErasedMark(uint32_t parity) {
  return parity ? kErasedInOdd : kErasedInEven;
}

// A table as the kernels use it.
struct TableView {
  int64_t* keys;       // [num_pairs * 2 * kBucketSlots], 256-byte aligned
  uint64_t* scores;    // likewise; null if the table never evicts
  uint32_t num_pairs;  // >= 2
  uint32_t probe_limit;
};

// A key's walk along its chain.
struct Chain {
  uint32_t pair, step, parity, num_pairs;

  EV_HOST_DEVICE Chain() {}
  EV_HOST_DEVICE Chain(uint64_t hash, const TableView& view)
      : pair(FirstPair(hash, view.num_pairs)),
        step(PairStep(hash, view.num_pairs)),
        parity(KeyParity(hash)),
        num_pairs(view.num_pairs) {}
  EV_HOST_DEVICE int64_t first_slot() const {
    return static_cast<int64_t>(BucketOf(pair, parity)) * kBucketSlots;
  }
  EV_HOST_DEVICE void Next() { pair = NextPair(pair, step, num_pairs); }
};

// Layout of the score in tables that evict the least recently used key: four
// times the number of the call that used the key last, plus these bits. Since
// the score contains the call's number, "inserted by this call" can be read
// from it, and no cleanup is needed.
constexpr uint64_t kLruNew = 1;  // inserted by that call
// and is_new was already set for one occurrence
constexpr uint64_t kLruClaimed = 2;
constexpr int kLruCallShift = 2;

}  // namespace gpu
}  // namespace ev

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_BUCKET_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Where a key may live: the hash, the chain of buckets, the marks of free
// slots, and what growth does to them. Shared by the kernels and by the host
// code that tests them. The essay in table_set.h explains why it is so.

#ifndef KERNELS_ENGINE_TABLE_GPU_BUCKET_H_
#define KERNELS_ENGINE_TABLE_GPU_BUCKET_H_

#include <cstdint>

#include "kernels/engine/base/host_device.h"

namespace ev {
namespace gpu {

constexpr int kBucketSlots =
    16;  // 16 int64 keys: one aligned line of 128 bytes
constexpr int kMaxProbeLimit = 16;

// A bijection of 64 bits (MurmurHash3's finaliser): two keys never share a
// hash, so the hash also orders keys, without ties, in an order that no user
// chose.
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
// parity of its hash, so an even bucket never holds a key with an odd hash:
// such keys can mark its free slots, and no value is taken from the user.
EV_HOST_DEVICE constexpr uint32_t KeyParity(uint64_t hash) {
  return static_cast<uint32_t>(hash & 1);
}

EV_HOST_DEVICE constexpr uint32_t ScaleHash(uint32_t hash, uint32_t range) {
  return static_cast<uint32_t>((static_cast<uint64_t>(hash) * range) >> 32);
}

// A key's first pair among those that a table is made with, and the distance to
// its next: 0 < step < num_pairs, so the first two always differ.
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
// clear, so no key went past it. Erased: it has been full; keys that passed it
// may be further along the chain.
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

// One table as the kernels see it. It has base_pairs * 2^d + split pairs: it
// has doubled d times and split the first pairs of the next doubling.
struct TableView {
  int64_t* keys;        // [NumPairs * 2 * kBucketSlots], 256-byte aligned
  uint64_t* scores;     // likewise, or null when the table never evicts
  uint32_t base_pairs;  // that it was made with, >= 2
  uint32_t layer_mask;  // 2^d - 1
  uint32_t split;       // < base_pairs * 2^d
  uint32_t probe_limit;
};

// Pairs before the doubling under way; a pair p < split has its other half at
// p + this.
EV_HOST_DEVICE uint32_t DoublingPairs(const TableView& view) {
  return view.base_pairs * (view.layer_mask + 1);
}
EV_HOST_DEVICE uint32_t NumPairs(const TableView& view) {
  return DoublingPairs(view) + view.split;
}

// A key's walk along its chain. A pair is a base pair and a layer, a number of
// which the table uses as many low bits as it has doublings: one bit more where
// it is split. So a chain keeps its order when the table grows, and each of its
// buckets stays or moves by DoublingPairs.
struct Chain {
  uint32_t base, step;
  uint32_t bits;  // bit 0: parity; above: the layer, all its bits
  uint32_t base_pairs, layer_mask, split;

  EV_HOST_DEVICE Chain() {}
  EV_HOST_DEVICE Chain(uint64_t hash, const TableView& view)
      : base(FirstPair(hash, view.base_pairs)),
        step(PairStep(hash, view.base_pairs)),
        bits(static_cast<uint32_t>(hash)),
        base_pairs(view.base_pairs),
        layer_mask(view.layer_mask),
        split(view.split) {}
  EV_HOST_DEVICE uint32_t parity() const { return bits & 1; }
  EV_HOST_DEVICE uint32_t pair() const {
    const uint32_t layer = bits >> 1;
    const uint32_t pair = base + base_pairs * (layer & layer_mask);
    return pair < split ? base + base_pairs * (layer & (2 * layer_mask + 1))
                        : pair;
  }
  EV_HOST_DEVICE int64_t first_slot() const {
    return static_cast<int64_t>(BucketOf(pair(), parity())) * kBucketSlots;
  }
  EV_HOST_DEVICE void Next() {
    base = NextPair(base, step, base_pairs);
    bits += 4 * step + 2;  // an odd number of layers
  }
};

// Whether a key leaves its bucket for the other half when the bucket's pair is
// split. REQUIRES: pair >= view.split, and is one of the key's chain. Of the
// places that a pair has in a chain the first one counts.
EV_HOST_DEVICE bool LeavesWhenSplit(uint64_t hash, const TableView& view,
                                    uint32_t pair) {
  Chain chain(hash, view);
  for (uint32_t j = 1; j < view.probe_limit && chain.pair() != pair; ++j) {
    chain.Next();
  }
  return ((chain.bits >> 1) & (view.layer_mask + 1)) != 0;
}

// Calls passed(bucket) for each bucket that a key in this bucket went past.
template <typename Passed>
EV_HOST_DEVICE void ForEachPassed(uint64_t hash, const TableView& view,
                                  uint64_t bucket, Passed passed) {
  Chain chain(hash, view);
  for (uint32_t j = 1; j < view.probe_limit; ++j) {
    const uint64_t at = BucketOf(chain.pair(), chain.parity());
    if (at == bucket) return;
    passed(at);
    chain.Next();
  }
}

// The table after pairs [split, split + num_pairs) are split. REQUIRES: they
// are within DoublingPairs.
EV_HOST_DEVICE TableView AfterSplit(TableView view, uint32_t num_pairs) {
  view.split += num_pairs;
  if (view.split == DoublingPairs(view)) {
    view.split = 0;
    view.layer_mask = 2 * view.layer_mask + 1;
  }
  return view;
}

// Scores of a table that evicts the least recently used: four times the number
// of the call that touched the key last, plus these bits. The number makes
// "inserted by this very call" readable from the score, so nothing must be
// cleaned up after.
constexpr uint64_t kLruNew = 1;      // that call inserted it
constexpr uint64_t kLruClaimed = 2;  // and has said so for one occurrence
constexpr int kLruCallShift = 2;

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_TABLE_GPU_BUCKET_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Which of n owners (ranks, partitions of a variable) a key belongs to, and the
// keys of a batch sorted by owner.

#ifndef KERNELS_ENGINE_IDS_PARTITION_H_
#define KERNELS_ENGINE_IDS_PARTITION_H_

#include <cstdint>

#include "kernels/engine/base/span.h"

namespace ev {

enum class OwnerRule {
  // floormod(key, n): the ranks of a lookup over all ranks.
  kModulo,
  // floormod(floormod(key, 1000), n): the partitions of a variable, and the
  // order of the keys in a checkpoint.
  kModulo1000,
};

// x mod n for any 64-bit x by two multiplications instead of a division, whose
// latency is several times as long. 1 <= n < 2^31.
class FastModulo {
 public:
  explicit FastModulo(int64_t n);

  int64_t divisor() const { return static_cast<int64_t>(n_); }

  uint64_t Unsigned(uint64_t x) const {
    const uint64_t high = static_cast<uint64_t>(
        (static_cast<unsigned __int128>(magic_) * x) >> 64);
    const uint64_t quotient = (((x - high) >> first_shift_) + high) >> shift_;
    return x - quotient * n_;
  }

  // In [0, n) for negative keys too.
  int64_t Floor(int64_t key) const {
    // Shifted up by 2^63, so that every key is a natural number; the shift's
    // own remainder is taken off again.
    const uint64_t x = static_cast<uint64_t>(key) ^ (uint64_t{1} << 63);
    const int64_t r = static_cast<int64_t>(Unsigned(x)) - bias_;
    return r < 0 ? r + static_cast<int64_t>(n_) : r;
  }

 private:
  uint64_t n_, magic_;
  int first_shift_, shift_;
  int64_t bias_;  // 2^63 mod n
};

// The owner of a key among n. For many keys, make one.
class OwnerOf {
 public:
  OwnerOf(OwnerRule rule, int num_owners)
      : thousand_(1000), owners_(num_owners), rule_(rule) {}
  int operator()(int64_t key) const {
    if (rule_ == OwnerRule::kModulo1000) {
      return static_cast<int>(
          owners_.Unsigned(static_cast<uint64_t>(thousand_.Floor(key))));
    }
    return static_cast<int>(owners_.Floor(key));
  }
  int num_owners() const { return static_cast<int>(owners_.divisor()); }

 private:
  FastModulo thousand_, owners_;
  OwnerRule rule_;
};

// Sorts keys by owner, keeping the order within an owner.
//   partitioned: [N]; the keys of owner o at [offsets[o], offsets[o + 1]).
//   positions:   [N] or null; partitioned[j] == keys[positions[j]].
//   offsets:     [owner.num_owners() + 1].
// keys.size() < 2^31; outputs must not overlap keys. Allocates nothing.
void PartitionByOwner(Span<const int64_t> keys, const OwnerOf& owner,
                      int64_t* partitioned, int32_t* positions,
                      int64_t* offsets);

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_PARTITION_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/hash.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

// How often n keys, thrown into n cells by the part of the hash that chooses a
// bucket, meet another: (pairs in one cell) / n is 1/2 for a random function.
template <typename Key>
double Collisions(const Key& key, int64_t n, int shift) {
  std::vector<int> cells(n, 0);
  double pairs = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits =
        static_cast<uint32_t>(MixKey(static_cast<int64_t>(key(i))) >> shift);
    pairs += cells[FastRange(bits, static_cast<uint32_t>(n))]++;
  }
  return pairs / static_cast<double>(n);
}

TEST(MixKeyTest, SpreadsPatternsAsWellAsRandomKeys) {
  // Keys made of two fields of bits anywhere in the word: runs, strides, ids
  // with a feature number in the high bits. Both halves of the hash choose
  // something.
  constexpr int64_t kKeys = 1 << 14;
  double worst = 0;
  for (int bits = 2; bits <= 14; bits += 3) {
    const uint64_t period = uint64_t{1} << bits;
    for (int low = 0; low < 64 - bits; low += 3) {
      for (int high = 0; high <= 50; high += 5) {
        const bool apart = low >= high + 14 - bits || high >= low + bits;
        if (!apart) continue;
        const auto key = [&](int64_t i) {
          const uint64_t u = static_cast<uint64_t>(i);
          return u % period << low ^ u / period << high;
        };
        for (int shift : {0, 32}) {
          worst = std::max(worst, Collisions(key, kKeys, shift));
        }
      }
    }
  }
  EXPECT_LT(worst, 1.5);
  for (uint64_t stride : {1ull, 3ull, 10ull, 1000ull, 65537ull, 1000003ull,
                          0x100000001ull, ~0ull}) {
    const auto key = [&](int64_t i) {
      return static_cast<uint64_t>(i) * stride;
    };
    EXPECT_LT(Collisions(key, kKeys, 0), 0.6) << stride;
    EXPECT_LT(Collisions(key, kKeys, 32), 0.6) << stride;
  }
}

TEST(MixKeyTest, DistinctKeysHaveDistinctHashes) {
  std::unordered_set<uint64_t> hashes;
  for (int64_t i = -50000; i < 50000; ++i)
    hashes.insert(MixKey(i * (int64_t{1} << 17)));
  EXPECT_EQ(hashes.size(), 100000u);
}

TEST(FastRangeTest, CoversItsRangeInOrder) {
  for (uint32_t n : {1u, 2u, 3u, 1000u, 4194303u}) {
    EXPECT_EQ(FastRange(0, n), 0u);
    EXPECT_EQ(FastRange(~0u, n), n - 1);
    uint32_t last = 0;
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 104729) {
      const uint32_t at = FastRange(static_cast<uint32_t>(bits), n);
      ASSERT_GE(at, last);
      ASSERT_LT(at, n);
      last = at;
    }
  }
}

}  // namespace
}  // namespace ev

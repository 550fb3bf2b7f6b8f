// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/partition.h"

#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

int64_t FloorMod(int64_t key, int64_t n) {
  const int64_t r = key % n;
  return r < 0 ? r + n : r;
}

std::vector<int64_t> SomeKeys() {
  std::vector<int64_t> keys = {0,           1,        -1,           kLowest,
                               kLowest + 1, kHighest, kHighest - 1, 999,
                               1000,        -1000,    -1001};
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; ++i) {
    keys.push_back(static_cast<int64_t>(random()) >> (random() % 64));
  }
  return keys;
}

TEST(FastModuloTest, EqualsDivision) {
  std::vector<int64_t> divisors = {1,
                                   2,
                                   3,
                                   5,
                                   7,
                                   8,
                                   10,
                                   16,
                                   641,
                                   1000,
                                   1024,
                                   65535,
                                   65536,
                                   65537,
                                   1000003,
                                   (int64_t{1} << 30) + 1,
                                   (int64_t{1} << 31) - 1};
  for (int64_t n = 1; n < 130; ++n) divisors.push_back(n);
  for (const int64_t n : divisors) {
    const FastModulo modulo(n);
    for (int64_t key : SomeKeys()) {
      ASSERT_EQ(modulo.Floor(key), FloorMod(key, n)) << key << " mod " << n;
      const uint64_t x = static_cast<uint64_t>(key);
      ASSERT_EQ(modulo.Unsigned(x), x % static_cast<uint64_t>(n));
    }
    for (int64_t m = 1; m < 1000; ++m) {  // around multiples
      for (int64_t key : {m * n - 1, m * n, m * n + 1, -m * n - 1, -m * n}) {
        ASSERT_EQ(modulo.Floor(key), FloorMod(key, n)) << key << " mod " << n;
      }
    }
  }
}

TEST(OwnerOfTest, RulesAreTheOnesOfCheckpointsAndRanks) {
  for (int n : {1, 2, 3, 4, 7, 8, 1000, 1001}) {
    const OwnerOf rank(OwnerRule::kModulo, n);
    const OwnerOf part(OwnerRule::kModulo1000, n);
    for (int64_t key : SomeKeys()) {
      ASSERT_EQ(rank(key), FloorMod(key, n));
      ASSERT_EQ(part(key), FloorMod(key, 1000) % n);
    }
  }
}

TEST(PartitionByOwnerTest, SortsByOwnerAndKeepsTheOrderWithin) {
  const std::vector<int64_t> all = SomeKeys();
  for (const OwnerRule rule : {OwnerRule::kModulo, OwnerRule::kModulo1000}) {
    for (int n : {1, 2, 5, 64, 5000}) {
      for (size_t size : {size_t{0}, size_t{1}, all.size()}) {
        const std::vector<int64_t> keys(all.begin(), all.begin() + size);
        std::vector<int64_t> partitioned(size, -7);
        std::vector<int32_t> positions(size, -7);
        std::vector<int64_t> offsets(n + 1, -7);
        const OwnerOf owner(rule, n);
        PartitionByOwner(keys, owner, partitioned.data(), positions.data(),
                         offsets.data());
        ASSERT_EQ(offsets[0], 0);
        ASSERT_EQ(offsets[n], static_cast<int64_t>(size));
        for (int o = 0; o < n; ++o) {
          for (int64_t j = offsets[o]; j < offsets[o + 1]; ++j) {
            ASSERT_EQ(owner(partitioned[j]), o);
            ASSERT_EQ(partitioned[j], keys[positions[j]]);
            if (j > offsets[o]) {
              ASSERT_LT(positions[j - 1], positions[j]);
            }
          }
        }
        std::vector<int64_t> again(size);
        PartitionByOwner(keys, owner, again.data(), nullptr, offsets.data());
        ASSERT_EQ(again, partitioned);
      }
    }
  }
}

}  // namespace
}  // namespace ev

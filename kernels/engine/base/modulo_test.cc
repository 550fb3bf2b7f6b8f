// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/modulo.h"

#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

// Uses a wider type, in which the key can be made a natural number.
int64_t ByDivision(int64_t key, int64_t n) {
  const __int128 shift = (__int128{1} << 70) / n * n;
  return static_cast<int64_t>((shift + key) % n);
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

TEST(ModuloTest, EqualsDivision) {
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
      ASSERT_EQ(modulo.Floor(key), ByDivision(key, n)) << key << " mod " << n;
      ASSERT_EQ(FloorMod(key, n), ByDivision(key, n)) << key << " mod " << n;
      const uint64_t x = static_cast<uint64_t>(key);
      ASSERT_EQ(modulo.Unsigned(x), x % static_cast<uint64_t>(n));
    }
    for (int64_t m = 1; m < 1000; ++m) {  // around multiples
      for (int64_t key : {m * n - 1, m * n, m * n + 1, -m * n - 1, -m * n}) {
        ASSERT_EQ(modulo.Floor(key), ByDivision(key, n)) << key << " mod " << n;
      }
    }
  }
}

}  // namespace
}  // namespace ev

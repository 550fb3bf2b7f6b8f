// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/partition.h"

#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/modulo.h"
#include "kernels/engine/testing/thread_pool.h"

namespace ev {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

std::vector<int64_t> SomeKeys(int64_t count) {
  std::vector<int64_t> keys = {0,           1,        -1,           kLowest,
                               kLowest + 1, kHighest, kHighest - 1, 999,
                               1000,        -1000,    -1001};
  std::mt19937_64 random(1);
  while (static_cast<int64_t>(keys.size()) < count) {
    keys.push_back(static_cast<int64_t>(random()) >> (random() % 64));
  }
  keys.resize(count);
  return keys;
}

struct Partitioned {
  Partitioned(int64_t n, int num_owners)
      : starts(num_owners + 1, -7), places(n, -7), counts(n, -7), keys(n, -7) {}
  PartitionedKeys out() {
    PartitionedKeys out;
    out.starts = starts.data();
    out.keys = keys.data();
    out.counts = counts.data();
    out.places = places.data();
    return out;
  }
  std::vector<int32_t> starts, places, counts;
  std::vector<int64_t> keys;
};

// Owner functions: the rank in a lookup over all ranks, and the part of a
// partitioned variable.
std::vector<std::function<int(int64_t)>> Rules(int n) {
  return {[n](int64_t key) { return static_cast<int>(FloorMod(key, n)); },
          [n](int64_t key) {
            return static_cast<int>(FloorMod(FloorMod(key, 1000), n));
          }};
}

TEST(PartitionByOwnerTest, SortsByOwnerAndKeepsTheOrderWithin) {
  testing::ThreadPool pool(3);
  for (int n : {1, 2, 5, 64, 5000}) {
    for (const auto& owner : Rules(n)) {
      for (int64_t size : {0, 1, 3000, 100000}) {
        const std::vector<int64_t> keys = SomeKeys(size);
        std::vector<int32_t> counts(size);
        for (int64_t i = 0; i < size; ++i) counts[i] = static_cast<int>(3 * i);
        Partitioned sorted(size, n);
        PartitionByOwner(keys, counts.data(), n, owner, nullptr, sorted.out());
        ASSERT_EQ(sorted.starts[0], 0);
        ASSERT_EQ(sorted.starts[n], size);
        std::vector<int64_t> from(size, -1);
        for (int64_t i = 0; i < size; ++i) {
          const int32_t place = sorted.places[i];
          ASSERT_EQ(sorted.keys[place], keys[i]);
          ASSERT_EQ(sorted.counts[place], counts[i]);
          ASSERT_EQ(from[place], -1);
          from[place] = i;
        }
        for (int o = 0; o < n; ++o) {
          for (int64_t j = sorted.starts[o]; j < sorted.starts[o + 1]; ++j) {
            ASSERT_EQ(owner(sorted.keys[j]), o);
            if (j > sorted.starts[o]) {
              ASSERT_LT(from[j - 1], from[j]);
            }
          }
        }
        Partitioned again(size, n);
        PartitionByOwner(keys, counts.data(), n, owner, &pool, again.out());
        ASSERT_EQ(again.keys, sorted.keys);
        ASSERT_EQ(again.places, sorted.places);
        ASSERT_EQ(again.counts, sorted.counts);
        ASSERT_EQ(again.starts, sorted.starts);
      }
    }
  }
}

TEST(PartitionByOwnerTest, WithoutCounts) {
  const std::vector<int64_t> keys = {5, -2, 4, 3};
  Partitioned sorted(4, 2);
  PartitionByOwner(keys, nullptr, 2, Rules(2)[0], nullptr, sorted.out());
  EXPECT_EQ(sorted.keys, (std::vector<int64_t>{-2, 4, 5, 3}));
  EXPECT_EQ(sorted.places, (std::vector<int32_t>{2, 0, 1, 3}));
  EXPECT_EQ(sorted.starts, (std::vector<int32_t>{0, 2, 4}));
  EXPECT_EQ(sorted.counts, std::vector<int32_t>(4, -7));  // untouched
}

}  // namespace
}  // namespace ev

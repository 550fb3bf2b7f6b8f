// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/unique.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <random>
#include <unordered_map>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/keyed_hash.h"
#include "kernels/engine/base/pages.h"
#include "kernels/engine/testing/made_keys.h"

namespace ev {
namespace {

template <typename Id>
void Check(Unique* dedup, const std::vector<Id>& ids) {
  std::vector<int64_t> expected;
  std::vector<int32_t> expected_counts, expected_inverse;
  std::unordered_map<int64_t, int32_t> seen;
  for (Id id : ids) {
    const auto it = seen.emplace(id, static_cast<int32_t>(expected.size()));
    if (it.second) {
      expected.push_back(id);
      expected_counts.push_back(0);
    }
    ++expected_counts[it.first->second];
    expected_inverse.push_back(it.first->second);
  }
  for (const bool with_counts : {true, false}) {
    std::vector<int64_t> unique(ids.size(), -99);
    std::vector<int32_t> inverse(ids.size(), -99), counts(ids.size(), -99);
    int64_t num_unique = -1;
    const Status status =
        dedup->Run(Span<const Id>(ids), unique.data(), inverse.data(),
                   with_counts ? counts.data() : nullptr, &num_unique);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(num_unique, static_cast<int64_t>(expected.size()));
    unique.resize(expected.size());
    counts.resize(expected.size());
    ASSERT_EQ(unique, expected);
    ASSERT_EQ(inverse, expected_inverse);
    if (with_counts) {
      ASSERT_EQ(counts, expected_counts);
    }
  }
}

double SecondsFor(const std::vector<int64_t>& ids) {
  std::vector<int64_t> unique(ids.size());
  std::vector<int32_t> inverse(ids.size());
  Unique dedup;
  double least = 1e9;
  for (int run = 0; run < 3; ++run) {
    int64_t num_unique = 0;
    const clock_t start = clock();
    EXPECT_TRUE(dedup
                    .Run(Span<const int64_t>(ids), unique.data(),
                         inverse.data(), nullptr, &num_unique)
                    .ok());
    least = std::min(least, static_cast<double>(clock() - start));
  }
  return least / CLOCKS_PER_SEC;
}

TEST(UniqueTest, IdsThatWereMadeToCollideCostWhatOthersCost) {
  std::mt19937_64 random(3);
  std::vector<int64_t> ids(60000), made, known;
  for (int64_t& id : ids) id = static_cast<int64_t>(random());
  const double usual = std::max(SecondsFor(ids), 1e-4);
  for (size_t i = 0; i < ids.size(); ++i) {
    made.push_back(testing::KeyOfOneLowerHalf(i));
  }
  EXPECT_LT(SecondsFor(made), 20 * usual);
  // Ids crafted with the secret are slow, and the result is still right.
  const KeyedHash hash = KeyedHash::FromSeed(1);
  for (uint64_t i = 0; i < 20000; ++i) known.push_back(hash.KeyOf(i));
  {
    const ScopedHashForTesting given(hash);
    EXPECT_GT(SecondsFor(known), 20 * usual);
    known.resize(2000);
    Unique dedup;
    Check<int64_t>(&dedup, known);
  }
}

TEST(UniqueTest, EmptyAndExtremes) {
  Unique dedup;
  Check<int64_t>(&dedup, {});
  Check<int64_t>(&dedup, {0});
  Check<int64_t>(&dedup, {7, 7, 7, 7});
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  const int64_t highest = std::numeric_limits<int64_t>::max();
  Check<int64_t>(&dedup, {highest, 0, -1, lowest, 0, highest, lowest, -1, 1});
  Check<int32_t>(&dedup, {-5, std::numeric_limits<int32_t>::min(), -5, 0,
                          std::numeric_limits<int32_t>::max(), 0});
}

TEST(UniqueTest, AgainstAModelAtEverySize) {
  Unique dedup;
  std::mt19937_64 random(11);
  for (size_t n : {1, 2, 31, 32, 33, 1000, 4096, 8192, 8193, 40960, 100003}) {
    for (int64_t range : {int64_t{1}, int64_t{10}, int64_t{3000},
                          std::numeric_limits<int64_t>::max()}) {
      std::vector<int64_t> ids(n);
      std::vector<int32_t> ids32(n);
      for (size_t i = 0; i < n; ++i) {
        const int64_t id = static_cast<int64_t>(random() >> 1) % range;
        ids[i] = (random() % 2 == 0 ? id : -id) * (range == 3000 ? 1 << 20 : 1);
        ids32[i] = static_cast<int32_t>(ids[i]);
      }
      Check(&dedup, ids);
      Check(&dedup, ids32);
    }
  }
}

TEST(UniqueTest, SkewedIds) {
  Unique dedup;
  std::mt19937_64 random(12);
  for (size_t n : {4096, 65537}) {
    std::vector<int64_t> ids(n);
    for (int64_t& id : ids) {
      const int bits = static_cast<int>(random() % 20);
      id = static_cast<int64_t>(random() % (1ull << bits));
    }
    Check(&dedup, ids);
  }
}

TEST(UniqueTest, ScratchStays) {
  Unique dedup;
  std::vector<int64_t> ids(50000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i);
  Check(&dedup, ids);
  const int64_t bytes = dedup.bytes();
  EXPECT_LE(bytes, 24 * 50000);
  SetAllocationHookForTesting([](size_t) { return false; });
  Check(&dedup, ids);
  ids.resize(100);
  Check(&dedup, ids);
  EXPECT_EQ(dedup.bytes(), bytes);
  // A longer batch than any so far, and no memory for it.
  ids.assign(200000, 3);
  std::vector<int64_t> unique(ids.size());
  std::vector<int32_t> inverse(ids.size());
  int64_t num_unique;
  EXPECT_EQ(dedup
                .Run(Span<const int64_t>(ids), unique.data(), inverse.data(),
                     nullptr, &num_unique)
                .code(),
            StatusCode::kResourceExhausted);
  SetAllocationHookForTesting(nullptr);
  Check(&dedup, ids);
}

}  // namespace
}  // namespace ev

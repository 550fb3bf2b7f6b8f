// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/policy/eviction.h"

#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

TEST(EvictionTest, ARowLivesForStepsToLiveSteps) {
  EXPECT_FALSE(IsStale(10, 10, 5));
  EXPECT_FALSE(IsStale(10, 15, 5));
  EXPECT_TRUE(IsStale(10, 16, 5));
}

TEST(EvictionTest, WeakIsHalfTheSumOfSquaresBelowTheThreshold) {
  const std::vector<float> row = {3.0f, 4.0f};  // 12.5
  EXPECT_TRUE(IsWeak(SumOfSquares(row.data(), 2), 12.6f));
  EXPECT_FALSE(IsWeak(SumOfSquares(row.data(), 2), 12.5f));
  EXPECT_TRUE(IsWeak(SumOfSquares(row.data(), 1), 4.6f));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(IsWeak(SumOfSquares(&nan, 1), 1e30f));
}

TEST(EvictionTest, LruRanksByVersionThenHash) {
  const auto rank = [](int64_t version, uint64_t hash) {
    return RankOf(CacheStrategy::kLru, /*frequency=*/7, version, 9, hash);
  };
  EXPECT_LT(rank(-1, 5), rank(0, 0));
  EXPECT_LT(rank(3, 9), rank(4, 1));
  EXPECT_LT(rank(3, 1), rank(3, 9));
}

TEST(EvictionTest, LfuRanksByFrequencyThenAgeAndSparesTheStepsOwnRows) {
  const auto rank = [](uint64_t frequency, int64_t version) {
    return RankOf(CacheStrategy::kLfu, frequency, version, /*step=*/9, 0);
  };
  EXPECT_LT(rank(1, 8), rank(2, 3));
  EXPECT_LT(rank(1, 3), rank(1, 8));
  EXPECT_LT(rank(1000, 8), rank(1, 9));
  EXPECT_LT(rank(1, -1), rank(1, 0));
}

}  // namespace
}  // namespace ev

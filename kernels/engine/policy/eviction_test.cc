// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/policy/eviction.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

TEST(EvictionTest, ARowLivesForStepsToLiveSteps) {
  EXPECT_FALSE(IsStale(10, 10, 5));
  EXPECT_FALSE(IsStale(10, 15, 5));
  EXPECT_TRUE(IsStale(10, 16, 5));
  // Steps of any size, and no overflow at the ends.
  constexpr int64_t kFar = int64_t{1} << 62;
  EXPECT_FALSE(IsStale(kFar, kFar + 5, 5));
  EXPECT_TRUE(IsStale(kFar, kFar + 6, 5));
  EXPECT_TRUE(IsStale(-1, std::numeric_limits<int64_t>::max(), 5));
  EXPECT_FALSE(IsStale(5, std::numeric_limits<int64_t>::min(), 5));
}

TEST(EvictionTest, WeakIsHalfTheSumOfSquaresBelowTheThreshold) {
  const std::vector<float> row = {3.0f, 4.0f};  // 12.5
  EXPECT_TRUE(IsWeak(SumOfSquares(row.data(), 2), 12.6f));
  EXPECT_FALSE(IsWeak(SumOfSquares(row.data(), 2), 12.5f));
  EXPECT_TRUE(IsWeak(SumOfSquares(row.data(), 1), 4.6f));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(IsWeak(SumOfSquares(&nan, 1), 1e30f));
}

UpdateCall Call(uint32_t call, int64_t step) {
  UpdateCall now;
  now.call = call;
  now.step = step;
  return now;
}

TEST(EvictionTest, LruRanksByVersionThenCallThenHash) {
  const auto rank = [](int64_t version, uint32_t call, uint64_t hash) {
    return RankOf(CacheStrategy::kLru, /*frequency=*/7, version, call,
                  Call(100, 9), hash);
  };
  EXPECT_LT(rank(-1, 8, 5), rank(0, 1, 0));
  EXPECT_LT(rank(3, 1, 9), rank(4, 1, 1));
  EXPECT_LT(rank(3, 1, 9), rank(3, 2, 1));
  EXPECT_LT(rank(3, 0, 9), rank(3, 1, 1));
  EXPECT_LT(rank(3, 1, 1), rank(3, 1, 9));
  // Rows of the call that evicts go last, and then those of later calls, even
  // where a clock was set back.
  EXPECT_LT(rank(9, 99, 9), rank(2, 100, 1));
  EXPECT_LT(rank(2, 100, 9), rank(2, 101, 1));
  EXPECT_TRUE(rank(2, 100, 0).is_of_call());
  EXPECT_FALSE(rank(9, 99, 0).is_of_call());
}

TEST(EvictionTest, LfuRanksByFrequencyThenAgeAndSparesTheStepsOwnRows) {
  const auto rank = [](uint32_t frequency, int64_t version, uint32_t call = 1) {
    return RankOf(CacheStrategy::kLfu, frequency, version, call, Call(100, 9),
                  0);
  };
  EXPECT_LT(rank(1, 8), rank(2, 3));
  EXPECT_LT(rank(1, 3), rank(1, 8));
  EXPECT_LT(rank(1, 8, 5), rank(1, 8, 6));
  EXPECT_LT(rank(1000, 8), rank(1, 9));
  EXPECT_LT(rank(1000, 9), rank(1, 9, 100));
  EXPECT_LT(rank(1, -1), rank(1, 0));
}

TEST(EvictionTest, TimesAreNoSteps) {
  UpdateCall now = Call(100, 9);
  now.steps_are_times = true;
  const auto rank = [&](uint32_t frequency, uint32_t call) {
    return RankOf(CacheStrategy::kLfu, frequency, /*version=*/9, call, now, 0);
  };
  EXPECT_LT(rank(1, 99), rank(2, 98));
  EXPECT_LT(rank(1000, 99), rank(1, 100));
}

TEST(EvictionTest, NumbersOfCallsWrap) {
  constexpr uint32_t kLast = std::numeric_limits<uint32_t>::max();
  const auto rank = [](uint32_t call) {
    return RankOf(CacheStrategy::kLru, 1, /*version=*/0, call, Call(5, 0), 0);
  };
  EXPECT_LT(rank(kLast), rank(3));
  EXPECT_LT(rank(3), rank(5));
  EXPECT_FALSE(rank(kLast).is_of_call());
  // An import evicts for no call.
  EXPECT_FALSE(
      RankOf(CacheStrategy::kLru, 1, 0, 7, UpdateCall(), 0).is_of_call());
}

}  // namespace
}  // namespace ev

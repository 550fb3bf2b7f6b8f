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
  // Large steps, and no overflow at either end of int64.
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

}  // namespace
}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/policy/cache_strategy.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace ev {
namespace {

UpdateCall Call(uint32_t call, int64_t step) {
  UpdateCall now;
  now.call = call;
  now.step = step;
  return now;
}

TEST(CacheStrategyTest, LruRanksByVersionThenCallThenHash) {
  const auto rank = [](int64_t version, uint32_t call, uint64_t hash) {
    return RankOf(CacheStrategy::kLru, RowHistory{version, 7, call},
                  Call(100, 9), hash);
  };
  EXPECT_LT(rank(-1, 8, 5), rank(0, 1, 0));
  EXPECT_LT(rank(3, 1, 9), rank(4, 1, 1));
  EXPECT_LT(rank(3, 1, 9), rank(3, 2, 1));
  EXPECT_LT(rank(3, 0, 9), rank(3, 1, 1));
  EXPECT_LT(rank(3, 1, 1), rank(3, 1, 9));
  // Rows of the evicting call go last, and rows of later calls after them, even
  // if a clock was set back.
  EXPECT_LT(rank(9, 99, 9), rank(2, 100, 1));
  EXPECT_LT(rank(2, 100, 9), rank(2, 101, 1));
  EXPECT_TRUE(rank(2, 100, 0).is_of_call());
  EXPECT_FALSE(rank(9, 99, 0).is_of_call());
}

TEST(CacheStrategyTest, LfuRanksByFrequencyThenAgeAndSparesTheStepsOwnRows) {
  const auto rank = [](uint32_t frequency, int64_t version, uint32_t call = 1) {
    return RankOf(CacheStrategy::kLfu, RowHistory{version, frequency, call},
                  Call(100, 9), 0);
  };
  EXPECT_LT(rank(1, 8), rank(2, 3));
  EXPECT_LT(rank(1, 3), rank(1, 8));
  EXPECT_LT(rank(1, 8, 5), rank(1, 8, 6));
  EXPECT_LT(rank(1000, 8), rank(1, 9));
  EXPECT_LT(rank(1000, 9), rank(1, 9, 100));
  EXPECT_LT(rank(1, -1), rank(1, 0));
}

TEST(CacheStrategyTest, TimesAreNoSteps) {
  UpdateCall now = Call(100, 9);
  now.steps_are_times = true;
  const auto rank = [&](uint32_t frequency, uint32_t call) {
    return RankOf(CacheStrategy::kLfu, RowHistory{9, frequency, call}, now, 0);
  };
  EXPECT_LT(rank(1, 99), rank(2, 98));
  EXPECT_LT(rank(1000, 99), rank(1, 100));
}

TEST(CacheStrategyTest, NumbersOfCallsWrap) {
  constexpr uint32_t kLast = std::numeric_limits<uint32_t>::max();
  const auto rank = [](uint32_t call) {
    return RankOf(CacheStrategy::kLru, RowHistory{0, 1, call}, Call(5, 0), 0);
  };
  EXPECT_LT(rank(kLast), rank(3));
  EXPECT_LT(rank(3), rank(5));
  EXPECT_FALSE(rank(kLast).is_of_call());
  // An import evicts without a call of its own.
  EXPECT_FALSE(RankOf(CacheStrategy::kLru, RowHistory{0, 1, 7}, UpdateCall(), 0)
                   .is_of_call());
}

TEST(CacheStrategyTest, FifoRanksByTheFirstCallThenVersionThenHash) {
  const auto rank = [](uint32_t call, int64_t version, uint64_t hash = 0) {
    return RankOf(CacheStrategy::kFifo, RowHistory{version, 7, call},
                  Call(100, 9), hash);
  };
  // A row that was inserted earlier goes first, however recent its last update.
  EXPECT_LT(rank(1, 8), rank(2, 3));
  EXPECT_LT(rank(0, 8), rank(1, 3));
  EXPECT_LT(rank(2, 3), rank(2, 8));
  EXPECT_LT(rank(2, 3, 1), rank(2, 3, 9));
  // Rows of the step go after all others; rows that the evicting call inserted
  // go last.
  EXPECT_LT(rank(99, 8), rank(1, 9));
  EXPECT_LT(rank(99, 9), rank(100, 9));
  EXPECT_LT(rank(1, 9), rank(2, 9));
  EXPECT_FALSE(rank(1, 9).is_of_call());
  EXPECT_TRUE(rank(100, 9).is_of_call());
  // Without steps, or with timestamps as versions, the call alone decides.
  EXPECT_LT(rank(1, -1), rank(2, -1));
  UpdateCall times = Call(100, 9);
  times.steps_are_times = true;
  EXPECT_LT(RankOf(CacheStrategy::kFifo, RowHistory{9, 7, 1}, times, 0),
            RankOf(CacheStrategy::kFifo, RowHistory{8, 7, 2}, times, 0));
}

TEST(CacheStrategyTest, FifoKeepsTheCallThatGaveTheRow) {
  EXPECT_EQ(CallToKeep(CacheStrategy::kFifo, /*kept=*/0, 7), 7u);
  EXPECT_EQ(CallToKeep(CacheStrategy::kFifo, /*kept=*/3, 7), 3u);
  EXPECT_EQ(CallToKeep(CacheStrategy::kFifo, /*kept=*/3, 0), 3u);
}

TEST(CacheStrategyTest, AStrategyIsFoundByItsName) {
  for (const CacheStrategy strategy : kCacheStrategies) {
    CacheStrategy found = strategy == kCacheStrategies[0] ? kCacheStrategies[1]
                                                          : kCacheStrategies[0];
    ASSERT_TRUE(FindCacheStrategy(CacheStrategyName(strategy), &found));
    EXPECT_EQ(found, strategy);
  }
  CacheStrategy found = CacheStrategy::kLru;
  EXPECT_FALSE(FindCacheStrategy("lfu", &found));
  EXPECT_EQ(found, CacheStrategy::kLru);
  EXPECT_STREQ(CacheStrategyName(CacheStrategy::kLru), "LRU");
  EXPECT_STREQ(CacheStrategyName(CacheStrategy::kLfu), "LFU");
  EXPECT_STREQ(CacheStrategyName(CacheStrategy::kFifo), "FIFO");
}

TEST(CacheStrategyTest, ARowWithoutHistoryGoesFirst) {
  for (const CacheStrategy strategy : kCacheStrategies) {
    EXPECT_LT(RankOf(strategy, RowHistory(), Call(100, 9), 5),
              RankOf(strategy, RowHistory{-1, 0, 1}, Call(100, 9), 1));
  }
}

TEST(CacheStrategyTest, OnlyLfuNeedsFrequencies) {
  EXPECT_TRUE(NeedsFrequency(CacheStrategy::kLfu));
  EXPECT_FALSE(NeedsFrequency(CacheStrategy::kLru));
  EXPECT_FALSE(NeedsFrequency(CacheStrategy::kFifo));
}

TEST(CacheStrategyTest, ARowKeepsTheCallThatUpdatedItLast) {
  for (const CacheStrategy strategy :
       {CacheStrategy::kLru, CacheStrategy::kLfu}) {
    EXPECT_EQ(CallToKeep(strategy, /*kept=*/0, 7), 7u);
    EXPECT_EQ(CallToKeep(strategy, /*kept=*/3, 7), 7u);
    EXPECT_EQ(CallToKeep(strategy, /*kept=*/3, 0), 0u);
  }
}

}  // namespace
}  // namespace ev

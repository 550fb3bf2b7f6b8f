// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/tiered/use_ranks.h"

#include <atomic>

#include "gtest/gtest.h"

namespace ev {
namespace {

using Rank = std::atomic<uint32_t>;

TEST(UseRanksTest, ARowThatWasUsedIsPassedOverOnce) {
  for (const CacheStrategy strategy :
       {CacheStrategy::kLfu, CacheStrategy::kLru}) {
    UseRanks ranks(strategy);
    Rank rank{0};
    uint32_t worth;
    ranks.Advance();
    ranks.Use(&rank);
    EXPECT_FALSE(ranks.Visit(&rank, &worth));
    EXPECT_TRUE(ranks.Visit(&rank, &worth));
  }
}

TEST(UseRanksTest, LfuTakesTheLeastUsedAndOfTheseTheOldest) {
  UseRanks ranks(CacheStrategy::kLfu);
  Rank often{0}, once{0}, earlier{0};
  uint32_t a, b, c;
  ranks.Use(&earlier);
  ranks.Visit(&earlier, &c);
  for (int i = 0; i < 3; ++i) ranks.Use(&often);
  ranks.Use(&once);
  for (Rank* rank : {&often, &once, &earlier}) ranks.Visit(rank, &a);
  ASSERT_TRUE(ranks.Visit(&often, &a) && ranks.Visit(&once, &b) &&
              ranks.Visit(&earlier, &c));
  EXPECT_GT(a, b);
  EXPECT_GT(b, c);
}

TEST(UseRanksTest, LfuForgetsInTheEnd) {
  UseRanks ranks(CacheStrategy::kLfu);
  Rank old{0}, young{0};
  uint32_t a, b;
  for (int i = 0; i < 1000; ++i) ranks.Use(&old);
  for (int i = 0; i < 500; ++i) ranks.Visit(&old, &a);
  for (int i = 0; i < 2; ++i) ranks.Use(&young);
  ranks.Visit(&young, &b);
  ranks.Visit(&old, &a);
  EXPECT_LT(a, b);
}

TEST(UseRanksTest, UsesDoNotOverflow) {
  UseRanks ranks(CacheStrategy::kLfu);
  Rank rank{0x7FFFFFFFu};
  uint32_t worth;
  for (int i = 0; i < 3; ++i) ranks.Use(&rank);
  EXPECT_FALSE(ranks.Visit(&rank, &worth));
  EXPECT_GT(UseRanks::Kept(rank), 0x70000000u);
}

// Times near the end of their range, and of the 31 bits of a rank.
class UseRanksTimesTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(UseRanksTimesTest, LruTakesTheLongestUnused) {
  UseRanks ranks(CacheStrategy::kLru, GetParam());
  Rank first{0}, second{0};
  uint32_t a, b;
  ranks.Use(&first);
  ranks.Advance();
  ranks.Use(&second);
  for (int i = 0; i < 10; ++i) ranks.Use(&first), ranks.Advance();
  ranks.Use(&second);
  ASSERT_FALSE(ranks.Visit(&first, &a) || ranks.Visit(&second, &b));
  ASSERT_TRUE(ranks.Visit(&first, &a) && ranks.Visit(&second, &b));
  EXPECT_LT(a, b);
}

TEST_P(UseRanksTimesTest, FifoTakesWhatCameFirst) {
  UseRanks ranks(CacheStrategy::kFifo, GetParam());
  Rank first{0}, second{0};
  uint32_t a, b;
  ranks.Advance();
  ranks.Arrive(&first, 0);
  ranks.Advance();
  ranks.Arrive(&second, 0);
  for (int i = 0; i < 10; ++i) ranks.Advance(), ranks.Use(&first);
  ASSERT_TRUE(ranks.Visit(&first, &a) && ranks.Visit(&second, &b));
  EXPECT_LT(a, b);
  // A row that returns counts as new, whatever its rank was when it left.
  const uint32_t kept = UseRanks::Kept(first);
  ranks.Advance();
  ranks.Arrive(&first, kept);
  ASSERT_TRUE(ranks.Visit(&first, &a) && ranks.Visit(&second, &b));
  EXPECT_GT(a, b);
}

TEST_P(UseRanksTimesTest, ARowUnusedForAllTimesStaysTheOldest) {
  for (const CacheStrategy strategy :
       {CacheStrategy::kLru, CacheStrategy::kFifo}) {
    UseRanks ranks(strategy, GetParam());
    std::atomic<uint32_t> aged{GetParam()};
    Rank old{0}, young{0};
    uint32_t a, b;
    ranks.Arrive(&old, 0);
    ranks.Visit(&old, &a);
    int agings = 0;
    // Twice the range of the times.
    for (int i = 0; i < 64; ++i) {
      ranks.Advance(kTimesPerAging / 4);
      if (ranks.IsTimeToAge(&aged)) {
        ++agings;
        ranks.Age(&old);
        ranks.Age(&young);
      }
      ranks.Arrive(&young, 0);
      ranks.Visit(&young, &b);
      ASSERT_TRUE(ranks.Visit(&old, &a));
      ranks.Visit(&young, &b);
      ASSERT_LT(a, b) << i;
    }
    EXPECT_EQ(agings, 16);
  }
}

TEST_P(UseRanksTimesTest, AUseAheadOfThisThreadsTimeIsTheNewest) {
  const UseRanks ranks(CacheStrategy::kLru, GetParam());
  UseRanks other(CacheStrategy::kLru, GetParam() + 5);
  Rank rank{0};
  uint32_t worth;
  other.Use(&rank);
  ranks.Age(&rank);
  ranks.Visit(&rank, &worth);
  EXPECT_EQ(worth, kTierRankBits);
}

INSTANTIATE_TEST_SUITE_P(All, UseRanksTimesTest,
                         ::testing::Values(0u, 0x7FFFFFFBu, 0xFFFFFFFBu));

}  // namespace
}  // namespace ev

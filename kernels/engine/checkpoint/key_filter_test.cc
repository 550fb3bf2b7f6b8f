// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/checkpoint/key_filter.h"

#include <limits>

#include "gtest/gtest.h"

namespace ev {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

TEST(KeyFilterTest, TakesEveryKeyByDefault) {
  const KeyFilter filter;
  EXPECT_TRUE(filter.TakesAll());
  for (const int64_t key : {int64_t{0}, int64_t{-1}, kLowest, kHighest}) {
    EXPECT_TRUE(filter.Takes(key)) << key;
  }
}

TEST(KeyFilterTest, EachKeyIsInOnePart) {
  for (const int64_t key : {int64_t{0}, int64_t{999}, int64_t{1000},
                            int64_t{-1}, int64_t{-1001}, kLowest, kHighest}) {
    for (const int num_parts : {1, 2, 3, 7, 1000, 1001}) {
      int parts = 0;
      for (int part = 0; part < num_parts; ++part) {
        KeyFilter filter;
        filter.part = part;
        filter.num_parts = num_parts;
        parts += filter.Takes(key);
      }
      EXPECT_EQ(parts, 1) << key << " of " << num_parts;
    }
  }
}

TEST(KeyFilterTest, PartsAreOfTheRemainderOf1000) {
  KeyFilter filter;
  filter.num_parts = 7;
  filter.part = 999 % 7;
  EXPECT_TRUE(filter.Takes(-1));
  filter.part = 1;
  EXPECT_TRUE(filter.Takes(1001));
}

TEST(KeyFilterTest, ARankTakesTheKeysPlacedOnIt) {
  KeyFilter filter;
  filter.placement = {4, 2, 4};
  filter.rank = 4;
  EXPECT_FALSE(filter.TakesAll());
  EXPECT_TRUE(filter.Takes(0));
  EXPECT_FALSE(filter.Takes(1));
  EXPECT_TRUE(filter.Takes(-1));
  EXPECT_FALSE(filter.Takes(-2));
}

TEST(KeyFilterTest, TheTablesPlaceIsItsPartOrTheRank) {
  KeyFilter filter;
  filter.part = 3;
  filter.rank = 5;
  EXPECT_EQ(filter.place(), 3);
  filter.placement = {0, 5};
  EXPECT_EQ(filter.place(), 5);
}

}  // namespace
}  // namespace ev

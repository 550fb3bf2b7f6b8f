// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/tiered/victim_hand.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

using CacheSlots = std::vector<VictimHand::CacheSlot>;

class VictimHandTest : public ::testing::Test {
 protected:
  VictimHandTest() : ranks_(CacheStrategy::kLru), hand_(&ranks_, 2) {
    for (TierRank& rank : rank_) rank = 0;
  }

  void Use(uint32_t cache_slot) {
    ranks_.Advance();
    ranks_.Use(&rank_[cache_slot]);
  }
  CacheSlots Choose(size_t wanted, int64_t held = -1,
                    int64_t cache_slots = kCacheSlots) {
    CacheSlots victims(wanted);
    const auto idle_rank = [&](uint32_t cache_slot) {
      return cache_slot == held ? nullptr : &rank_[cache_slot];
    };
    victims.resize(
        hand_.Choose(cache_slots, wanted, idle_rank, victims.data()));
    return victims;
  }

  static constexpr int64_t kCacheSlots = 6;
  UseRanks ranks_;
  VictimHand hand_;
  TierRank rank_[kCacheSlots];
};

TEST_F(VictimHandTest, OfTwiceAsManyThoseWorthLeastGo) {
  for (const uint32_t cache_slot : {1, 0, 2, 3, 5, 4}) Use(cache_slot);
  // In the first round all rows were used; in the second the first one visited
  // goes.
  EXPECT_EQ(Choose(1), CacheSlots{0});
  EXPECT_EQ(Choose(1), CacheSlots{1});  // candidates 1 and 2
  EXPECT_EQ(Choose(1), CacheSlots{3});  // candidates 3 and 4
  EXPECT_EQ(Choose(1), CacheSlots{0});  // candidates 5 and 0
  hand_.Reset();
  EXPECT_EQ(Choose(1), CacheSlots{1});
}

TEST_F(VictimHandTest, ARowThatMustStayIsPassedOver) {
  for (uint32_t cache_slot = 0; cache_slot < kCacheSlots; ++cache_slot)
    Use(cache_slot);
  EXPECT_EQ(Choose(1, /*held=*/0), CacheSlots{1});
  EXPECT_EQ(Choose(1, /*held=*/0, /*cache_slots=*/1), CacheSlots{});
}

TEST_F(VictimHandTest, ARowThatWasUsedIsPassedOverWhileOthersWereNot) {
  for (uint32_t cache_slot = 0; cache_slot < kCacheSlots; ++cache_slot)
    Use(cache_slot);
  Choose(3);  // all have been visited
  Use(0);
  Use(1);
  hand_.Reset();
  EXPECT_EQ(Choose(1), CacheSlots{2});
}

TEST_F(VictimHandTest, ChoosesAtMostAllCacheSlots) {
  for (uint32_t cache_slot = 0; cache_slot < kCacheSlots; ++cache_slot)
    Use(cache_slot);
  Choose(3);
  EXPECT_EQ(Choose(6).size(), 6u);
  EXPECT_EQ(Choose(3, -1, /*cache_slots=*/0), CacheSlots{});
}

}  // namespace
}  // namespace ev

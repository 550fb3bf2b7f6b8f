// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/tiered/victim_hand.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

using Places = std::vector<VictimHand::Place>;

class VictimHandTest : public ::testing::Test {
 protected:
  VictimHandTest() : ranks_(CacheStrategy::kLru), hand_(&ranks_, 2) {
    for (TierRank& rank : rank_) rank = 0;
  }

  void Use(uint32_t place) {
    ranks_.Advance();
    ranks_.Use(&rank_[place]);
  }
  Places Choose(size_t wanted, int64_t held = -1, int64_t places = kPlaces) {
    Places victims(wanted);
    const auto idle_rank = [&](uint32_t place) {
      return place == held ? nullptr : &rank_[place];
    };
    victims.resize(hand_.Choose(places, wanted, idle_rank, victims.data()));
    return victims;
  }

  static constexpr int64_t kPlaces = 6;
  UseRanks ranks_;
  VictimHand hand_;
  TierRank rank_[kPlaces];
};

TEST_F(VictimHandTest, OfTwiceAsManyThoseWorthLeastGo) {
  for (const uint32_t place : {1, 0, 2, 3, 5, 4}) Use(place);
  // In the first round all rows were used; in the second the first one visited
  // goes.
  EXPECT_EQ(Choose(1), Places{0});
  EXPECT_EQ(Choose(1), Places{1});  // candidates 1 and 2
  EXPECT_EQ(Choose(1), Places{3});  // candidates 3 and 4
  EXPECT_EQ(Choose(1), Places{0});  // candidates 5 and 0
  hand_.Reset();
  EXPECT_EQ(Choose(1), Places{1});
}

TEST_F(VictimHandTest, ARowThatMustStayIsPassedOver) {
  for (uint32_t place = 0; place < kPlaces; ++place) Use(place);
  EXPECT_EQ(Choose(1, /*held=*/0), Places{1});
  EXPECT_EQ(Choose(1, /*held=*/0, /*places=*/1), Places{});
}

TEST_F(VictimHandTest, ARowThatWasUsedIsPassedOverWhileOthersWereNot) {
  for (uint32_t place = 0; place < kPlaces; ++place) Use(place);
  Choose(3);  // all have been visited
  Use(0);
  Use(1);
  hand_.Reset();
  EXPECT_EQ(Choose(1), Places{2});
}

TEST_F(VictimHandTest, ChoosesAtMostAllPlaces) {
  for (uint32_t place = 0; place < kPlaces; ++place) Use(place);
  Choose(3);
  EXPECT_EQ(Choose(6).size(), 6u);
  EXPECT_EQ(Choose(3, -1, /*places=*/0), Places{});
}

}  // namespace
}  // namespace ev

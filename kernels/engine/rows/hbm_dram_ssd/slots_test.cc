// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/hbm_dram_ssd/slots.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

using Slot = Slots::Slot;

// Takes n slots, for rows with handles and keys 100, 101, ...
std::vector<Slot> TakeMany(Slots* slots, int n) {
  std::vector<Slot> taken;
  for (int i = 0; i < n; ++i) {
    taken.push_back(slots->Take(100 + i, 100 + i, /*is_new=*/true));
  }
  return taken;
}

TEST(SlotsTest, EachSlotHasOneRow) {
  Slots slots;
  slots.Resize(3);
  EXPECT_EQ(TakeMany(&slots, 3), (std::vector<Slot>{0, 1, 2}));
  EXPECT_EQ(slots.Take(7, 7, true), kNoRow);
  EXPECT_EQ(slots.num_free(), 0);
  const std::vector<Slot> one = {1}, asked = {0, 1, 2, 9};
  slots.GiveBack(one);
  std::vector<RowHandle> handles(4);
  slots.FindHandles(asked, handles.data());
  EXPECT_EQ(handles, (std::vector<RowHandle>{100, kNoRow, 102, kNoRow}));
  EXPECT_EQ(slots.Take(7, 8, true), 1u);
  EXPECT_EQ(slots.at(1).key, 7);
  EXPECT_EQ(slots.at(1).handle, 8u);
  slots.Resize(5);
  EXPECT_EQ(slots.num_free(), 5);
  EXPECT_EQ(slots.num_used(), 0);
}

TEST(SlotsTest, RowsThatAreWorthLeastLeave) {
  Slots slots;
  slots.Resize(100);
  TakeMany(&slots, 100);
  slots.StartBring();
  slots.StartBring();
  std::vector<bool> stays(100, false);
  stays[3] = true;
  const auto worth = [](Slot first, Span<uint32_t> to) {
    for (size_t i = 0; i < to.size(); ++i) to[i] = (first + i) % 10;
    return Status::OK();
  };
  std::vector<Slot> chosen;
  ASSERT_TRUE(slots.Choose(10, stays, worth, &chosen).ok());
  std::sort(chosen.begin(), chosen.end());
  EXPECT_EQ(chosen, (std::vector<Slot>{0, 10, 20, 30, 40, 50, 60, 70, 80, 90}));
  // Rows that have just come stay.
  slots.GiveBack(chosen);
  for (const Slot slot : chosen) slots.Take(slot, slot, /*is_new=*/false);
  ASSERT_TRUE(slots.Choose(89, stays, nullptr, &chosen).ok());
  EXPECT_EQ(chosen.size(), 89u);
  for (const Slot slot : chosen) {
    EXPECT_NE(slot % 10, 0u);
    EXPECT_NE(slot, 3u);
  }
  ASSERT_TRUE(slots.Choose(200, stays, worth, &chosen).ok());
  EXPECT_EQ(chosen.size(), 99u);
  // An error chooses nothing that a call could use, and the next call works.
  const auto fails = [](Slot, Span<uint32_t>) { return Internal("no GPU"); };
  EXPECT_EQ(slots.Choose(1, stays, fails, &chosen).message(), "no GPU");
  ASSERT_TRUE(slots.Choose(1, stays, worth, &chosen).ok());
  EXPECT_EQ(chosen.size(), 1u);
}

// Free slots at the hand do not make every call look at all slots.
TEST(SlotsTest, ManyFreeSlotsArePassedOnce) {
  constexpr int64_t kAll = 200000, kFree = 20000;
  Slots slots;
  slots.Resize(kAll);
  TakeMany(&slots, kAll);
  std::vector<Slot> first(kFree);
  std::iota(first.begin(), first.end(), Slot{0});
  slots.GiveBack(first);
  int64_t looked_at = 0;
  const auto worth = [&](Slot, Span<uint32_t> of) {
    looked_at += of.size();
    return Status::OK();
  };
  std::vector<Slot> chosen;
  const std::vector<bool> stays(kAll);
  ASSERT_TRUE(slots.Choose(100, stays, worth, &chosen).ok());
  EXPECT_EQ(chosen.size(), 100u);
  EXPECT_GT(looked_at, kFree);
  EXPECT_LE(looked_at, 2 * kFree);
  looked_at = 0;
  ASSERT_TRUE(slots.Choose(100, stays, worth, &chosen).ok());
  EXPECT_EQ(chosen.size(), 100u);
  EXPECT_EQ(looked_at, 1024);
}

TEST(SlotsTest, RoomIsNeededForAsManyNewRowsAsCameBefore) {
  Slots slots;
  slots.Resize(320);
  EXPECT_FALSE(slots.NeedsRoom());
  TakeMany(&slots, 10);
  EXPECT_FALSE(slots.NeedsRoom());
  EXPECT_EQ(slots.room(), 40);
  TakeMany(&slots, 305);
  // At most a sixteenth of all slots.
  EXPECT_TRUE(slots.NeedsRoom());
  const std::vector<Slot> some = {1, 2,  3,  4,  5,  6,  7, 8,
                                  9, 10, 11, 12, 13, 14, 15};
  slots.GiveBack(some);
  EXPECT_FALSE(slots.NeedsRoom());
}

}  // namespace
}  // namespace ev

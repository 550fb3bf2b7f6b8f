// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/parts/table_changes.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

using Keys = std::vector<int64_t>;

TEST(TableChangesTest, RowsChangeSinceACut) {
  TableChanges changes;
  changes.Mark(7);
  const int64_t first = changes.Cut();
  EXPECT_FALSE(changes.RowChanged(7, first));
  changes.Mark(8);
  const int64_t second = changes.Cut();
  changes.Mark(0x7FFFFFFF);
  EXPECT_TRUE(changes.RowChanged(8, first));
  EXPECT_FALSE(changes.RowChanged(8, second));
  EXPECT_TRUE(changes.RowChanged(0x7FFFFFFF, second));
  // Rows and counters have handles of their own.
  EXPECT_FALSE(changes.CounterChanged(8, first));
  changes.MarkCounter(8);
  EXPECT_TRUE(changes.CounterChanged(8, first));
}

TEST(TableChangesTest, BeforeTheRecordingEverythingHasChanged) {
  TableChanges changes;
  EXPECT_TRUE(changes.NeedsEverything(0));
  EXPECT_FALSE(changes.NeedsEverything(changes.Cut()));
}

TEST(TableChangesTest, ErasedKeysSinceACutComeOnce) {
  TableChanges changes;
  const int64_t first = changes.Cut();
  changes.Erased(Keys{5, -3}, 10);
  const int64_t second = changes.Cut();
  changes.Erased(Keys{5, 9}, 10);
  EXPECT_EQ((Keys{-3, 5, 9}), changes.ErasedSince(first));
  EXPECT_EQ((Keys{5, 9}), changes.ErasedSince(second));
}

TEST(TableChangesTest, WhatIsForgottenNeedsEverything) {
  TableChanges changes;
  const int64_t first = changes.Cut();
  changes.Erased(Keys{5}, 10);
  const int64_t second = changes.Cut();
  changes.Erased(Keys{6}, 10);
  changes.Forget(second);
  EXPECT_TRUE(changes.NeedsEverything(first));
  EXPECT_FALSE(changes.NeedsEverything(second));
  EXPECT_EQ(Keys{6}, changes.ErasedSince(second));
  // Another export from the same cut drops nothing more.
  changes.Forget(second);
  changes.Forget(first);
  EXPECT_EQ(Keys{6}, changes.ErasedSince(second));
}

TEST(TableChangesTest, AnEmptiedTableNeedsEverything) {
  TableChanges changes;
  const int64_t before = changes.Cut();
  changes.Erased(Keys{5}, 10);
  changes.Emptied();
  changes.Mark(3);
  EXPECT_TRUE(changes.NeedsEverything(before));
  const int64_t after = changes.Cut();
  EXPECT_TRUE(changes.NeedsEverything(before));
  EXPECT_FALSE(changes.NeedsEverything(after));
  EXPECT_TRUE(changes.ErasedSince(after).empty());
}

TEST(TableChangesTest, ALogLongerThanTheTableNeedsEverything) {
  TableChanges changes;
  const int64_t before = changes.Cut();
  changes.Erased(Keys(1 << 18), 10);
  EXPECT_FALSE(changes.NeedsEverything(before));
  changes.Erased(Keys(1), 10);
  EXPECT_TRUE(changes.NeedsEverything(before));
  EXPECT_FALSE(changes.NeedsEverything(changes.Cut()));
  // A larger table may have a longer log.
  const int64_t later = changes.Cut();
  changes.Erased(Keys((1 << 18) + 1), 1 << 20);
  EXPECT_FALSE(changes.NeedsEverything(later));
}

TEST(TableChangesTest, ThreadsMarkRowsOfOnePieceAtOnce) {
  TableChanges changes;
  const int64_t cut = changes.Cut();
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&changes, t] {
      for (uint32_t i = t; i < 200000; i += 4) changes.Mark(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint32_t i = 0; i < 200000; ++i) {
    ASSERT_TRUE(changes.RowChanged(i, cut)) << i;
  }
  EXPECT_FALSE(changes.RowChanged(200000, cut));
}

}  // namespace
}  // namespace ev

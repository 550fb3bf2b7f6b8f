// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu/new_rows.h"

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace gpu {
namespace {

TEST(NewRowsTest, TakesEachRowOnceInTheOrderOfAdding) {
  NewRows rows;
  EXPECT_FALSE(rows.has_any());
  const int64_t key = 7;
  ASSERT_TRUE(rows.Add(&key, 1, 10).ok());
  ASSERT_TRUE(rows.Add(nullptr, 2, 20).ok());
  EXPECT_TRUE(rows.has_any());
  NewRows::Queue queue;
  {
    const std::unique_lock<std::mutex> lock = rows.Take(&queue);
    ASSERT_EQ(queue.rows.size(), 2);
    EXPECT_EQ(queue.rows[0].handle, 1);
    EXPECT_EQ(queue.rows[0].default_row, 10);
    EXPECT_EQ(queue.rows[1].handle, 2);
    EXPECT_EQ(queue.rows[1].default_row, 20);
    ASSERT_EQ(queue.keys.size(), 1);
    EXPECT_EQ(queue.keys[0].key, 7);
    EXPECT_EQ(queue.keys[0].handle, 1);
    // They are not written yet.
    EXPECT_TRUE(rows.has_any());
    rows.Done();
  }
  EXPECT_FALSE(rows.has_any());
  NewRows::Queue empty;
  rows.Take(&empty);
  EXPECT_TRUE(empty.empty());
}

TEST(NewRowsTest, ARowAddedDuringTheWritingIsLeft) {
  NewRows rows;
  ASSERT_TRUE(rows.Add(nullptr, 1, 0).ok());
  NewRows::Queue queue;
  const std::unique_lock<std::mutex> lock = rows.Take(&queue);
  ASSERT_TRUE(rows.Add(nullptr, 2, 0).ok());
  rows.Done();
  EXPECT_TRUE(rows.has_any());
}

TEST(NewRowsTest, AQueueGivenBackIsTakenAgainWithLaterRows) {
  NewRows rows;
  const int64_t keys[] = {7, 8};
  ASSERT_TRUE(rows.Add(&keys[0], 1, 0).ok());
  {
    NewRows::Queue queue;
    const std::unique_lock<std::mutex> lock = rows.Take(&queue);
    ASSERT_TRUE(rows.Add(&keys[1], 2, 0).ok());
    rows.GiveBack(queue);
  }
  EXPECT_TRUE(rows.has_any());
  NewRows::Queue queue;
  rows.Take(&queue);
  EXPECT_EQ(queue.rows.size(), 2);
  EXPECT_EQ(queue.keys.size(), 2);
}

TEST(NewRowsTest, ClearForgetsAll) {
  NewRows rows;
  const int64_t key = 7;
  ASSERT_TRUE(rows.Add(&key, 1, 0).ok());
  rows.Clear();
  EXPECT_FALSE(rows.has_any());
  NewRows::Queue queue;
  rows.Take(&queue);
  EXPECT_TRUE(queue.empty());
}

TEST(NewRowsTest, ThreadsAddWhileOneWrites) {
  constexpr int kThreads = 4, kRows = 2000;
  NewRows rows;
  std::vector<std::thread> threads;
  std::atomic<int> num_running{kThreads};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&rows, &num_running, t] {
      for (int i = 0; i < kRows; ++i) {
        const int64_t key = t * kRows + i;
        EXPECT_TRUE(rows.Add(&key, static_cast<RowHandle>(key), key).ok());
      }
      --num_running;
    });
  }
  std::set<int64_t> written;
  while (num_running != 0 || rows.has_any()) {
    NewRows::Queue queue;
    const std::unique_lock<std::mutex> lock = rows.Take(&queue);
    EXPECT_EQ(queue.rows.size(), queue.keys.size());
    for (const NewRows::Key& key : queue.keys) {
      EXPECT_TRUE(written.insert(key.key).second) << key.key;
    }
    rows.Done();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(written.size(), kThreads * kRows);
}

}  // namespace
}  // namespace gpu
}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu/new_rows.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/testing/failing_allocations.h"

namespace ev {
namespace gpu {
namespace {

std::vector<RowHandle> Handles(const NewRows::Queue& queue) {
  std::vector<RowHandle> handles;
  for (const NewRows::Row& row : queue.rows) handles.push_back(row.handle);
  std::sort(handles.begin(), handles.end());
  return handles;
}

std::vector<int64_t> Keys(const NewRows::Queue& queue) {
  std::vector<int64_t> keys;
  for (const NewRows::Key& key : queue.keys) keys.push_back(key.key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

TEST(NewRowsTest, TakesEachRowOnceInTheOrderOfAdding) {
  NewRows rows;
  EXPECT_FALSE(rows.has_any());
  const int64_t key = 7;
  ASSERT_TRUE(rows.Add(&key, 1, 10).ok());
  ASSERT_TRUE(rows.Add(nullptr, 2, 20).ok());
  EXPECT_TRUE(rows.has_any());
  {
    NewRows::Writing writing(&rows);
    const NewRows::Queue& queue = writing.queue();
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
    EXPECT_FALSE(writing.wrote_any());
    writing.WroteRows(2);
    writing.WroteKeys(1);
    EXPECT_TRUE(writing.wrote_any());
  }
  EXPECT_FALSE(rows.has_any());
  EXPECT_TRUE(NewRows::Writing(&rows).queue().empty());
}

TEST(NewRowsTest, ARowAddedDuringTheWritingIsLeft) {
  NewRows rows;
  ASSERT_TRUE(rows.Add(nullptr, 1, 0).ok());
  {
    NewRows::Writing writing(&rows);
    ASSERT_TRUE(rows.Add(nullptr, 2, 0).ok());
    writing.WroteRows(1);
  }
  EXPECT_TRUE(rows.has_any());
  EXPECT_EQ(Handles(NewRows::Writing(&rows).queue()),
            (std::vector<RowHandle>{2}));
}

TEST(NewRowsTest, WhatAWriterDidNotWriteIsTakenAgainWithLaterRows) {
  NewRows rows;
  const int64_t keys[] = {7, 8, 9};
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(rows.Add(&keys[i], 1 + i, 0).ok());
  }
  {
    NewRows::Writing writing(&rows);
    ASSERT_TRUE(rows.Add(&keys[2], 3, 0).ok());
    writing.WroteRows(2);
    writing.WroteKeys(1);
  }
  EXPECT_TRUE(rows.has_any());
  const NewRows::Writing writing(&rows);
  EXPECT_EQ(Handles(writing.queue()), (std::vector<RowHandle>{3}));
  EXPECT_EQ(Keys(writing.queue()), (std::vector<int64_t>{8, 9}));
}

TEST(NewRowsTest, ARowRenewedAgainAfterAFailureIsWrittenOnce) {
  NewRows rows;
  ASSERT_TRUE(rows.Add(nullptr, 1, 10).ok());
  ASSERT_TRUE(rows.Add(nullptr, 2, 20).ok());
  { NewRows::Writing failed(&rows); }
  ASSERT_TRUE(rows.Add(nullptr, 1, 11).ok());
  const NewRows::Writing writing(&rows);
  ASSERT_EQ(Handles(writing.queue()), (std::vector<RowHandle>{1, 2}));
  for (const NewRows::Row& row : writing.queue().rows) {
    EXPECT_EQ(row.default_row, row.handle == 1 ? 11 : 20);
  }
}

TEST(NewRowsTest, ForgetsRowsAndKeys) {
  NewRows rows;
  for (int64_t key = 0; key < 100; ++key) {
    ASSERT_TRUE(rows.Add(&key, static_cast<RowHandle>(key), 0).ok());
    // Half of them are left by a writer.
    if (key == 49) NewRows::Writing failed(&rows);
  }
  const std::vector<int64_t> keys = {70, 3, 200, 3};
  EXPECT_EQ(rows.ForgetKeys(keys), 2);
  const std::vector<RowHandle> handles = {70, 3, 200};
  rows.ForgetRows(handles);
  {
    NewRows::Writing writing(&rows);
    EXPECT_EQ(writing.queue().rows.size(), 98);
    for (const int64_t gone : {3, 70}) {
      for (const int64_t key : Keys(writing.queue())) EXPECT_NE(key, gone);
      for (const RowHandle h : Handles(writing.queue())) EXPECT_NE(h, gone);
    }
    writing.WroteRows(97);
    writing.WroteKeys(98);
  }
  EXPECT_TRUE(rows.has_any());
  std::vector<RowHandle> all(100);
  std::iota(all.begin(), all.end(), 0);
  rows.ForgetRows(all);
  EXPECT_FALSE(rows.has_any());
}

TEST(NewRowsTest, WithoutHostMemoryNothingIsLost) {
  NewRows rows;
  const int64_t keys[] = {7, 8};
  ASSERT_TRUE(rows.Add(&keys[0], 1, 0).ok());
  { NewRows::Writing failed(&rows); }
  ASSERT_TRUE(rows.Add(&keys[1], 2, 0).ok());
  for (int64_t at = 0; at < 2; ++at) {
    testing::allocations_left = at;
    EXPECT_THROW(NewRows::Writing(&rows).queue(), std::bad_alloc);
    testing::allocations_left = -1;
  }
  const NewRows::Writing writing(&rows);
  EXPECT_EQ(Handles(writing.queue()), (std::vector<RowHandle>{1, 2}));
  EXPECT_EQ(Keys(writing.queue()), (std::vector<int64_t>{7, 8}));
}

TEST(NewRowsTest, ClearForgetsAll) {
  NewRows rows;
  const int64_t key = 7;
  ASSERT_TRUE(rows.Add(&key, 1, 0).ok());
  { NewRows::Writing failed(&rows); }
  ASSERT_TRUE(rows.Add(nullptr, 2, 0).ok());
  rows.Clear();
  EXPECT_FALSE(rows.has_any());
  EXPECT_TRUE(NewRows::Writing(&rows).queue().empty());
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
    NewRows::Writing writing(&rows);
    const NewRows::Queue& queue = writing.queue();
    EXPECT_EQ(queue.rows.size(), queue.keys.size());
    for (const NewRows::Key& key : queue.keys) {
      EXPECT_TRUE(written.insert(key.key).second) << key.key;
    }
    writing.WroteRows(queue.rows.size());
    writing.WroteKeys(queue.keys.size());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(written.size(), kThreads * kRows);
}

}  // namespace
}  // namespace gpu
}  // namespace ev

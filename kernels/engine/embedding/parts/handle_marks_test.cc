// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/parts/handle_marks.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

TEST(HandleMarksTest, EachHandleHasItsOwnMarks) {
  HandleMarks marks;
  const std::vector<RowHandle> handles = {
      0, 1, 31, 32, (1u << 18) - 1, 1u << 18, kFirstReservedHandle - 1};
  for (const RowHandle handle : handles) EXPECT_EQ(marks.Get(handle), 0u);
  for (size_t i = 0; i < handles.size(); ++i) {
    EXPECT_TRUE(marks.Set(
        handles[i], i % 2 == 0 ? HandleMarks::kFirst : HandleMarks::kSecond));
  }
  for (size_t i = 0; i < handles.size(); ++i) {
    EXPECT_EQ(marks.Get(handles[i]), 1 + i % 2) << handles[i];
    EXPECT_EQ(marks.Has(handles[i], HandleMarks::kFirst), i % 2 == 0);
  }
  EXPECT_EQ(marks.Get(2), 0u);
  EXPECT_EQ(marks.Get((1u << 18) + 1), 0u);
  EXPECT_TRUE(marks.Set(0, HandleMarks::kSecond));
  EXPECT_EQ(marks.Get(0), 3u);
}

TEST(HandleMarksTest, ThreadsSetMarksOfOneWord) {
  HandleMarks marks;
  std::vector<std::thread> threads;
  for (RowHandle t = 0; t < 4; ++t) {
    threads.emplace_back([&marks, t] {
      for (RowHandle h = t; h < 100000; h += 4) {
        marks.Set(h, HandleMarks::kFirst);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (RowHandle h = 0; h < 100000; ++h) ASSERT_EQ(marks.Get(h), 1u);
}

}  // namespace
}  // namespace ev

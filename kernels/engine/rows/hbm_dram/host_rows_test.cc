// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/hbm_dram/host_rows.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

using Row = HostRows::Row;

std::vector<Row> Allocate(HostRows* rows, int count, bool is_reserved) {
  std::vector<Row> got(count);
  for (Row& row : got) EXPECT_TRUE(rows->Allocate(is_reserved, &row).ok());
  return got;
}

TEST(HostRowsTest, RowsThatAreFreedAreGivenOutAgain) {
  HostRows rows(3);
  const std::vector<Row> first = Allocate(&rows, 5, false);
  EXPECT_EQ(rows.in_use(), 5);
  rows.Free(first);
  EXPECT_EQ(rows.in_use(), 0);
  const std::vector<Row> second = Allocate(&rows, 5, false);
  EXPECT_EQ(std::set<Row>(first.begin(), first.end()),
            std::set<Row>(second.begin(), second.end()));
  rows.floats(second[0])[2] = 7.0f;
  rows.set_rank(second[0], 9);
  EXPECT_EQ(rows.floats(second[0])[2], 7.0f);
  EXPECT_EQ(rows.rank(second[0]), 9u);
}

TEST(HostRowsTest, ReservedRowsAreKeptForTheReservation) {
  HostRows rows(3);
  ASSERT_TRUE(rows.Reserve(4, 100).ok());
  const int64_t bytes = rows.bytes();
  const std::vector<Row> others = Allocate(&rows, 10, false);
  const std::vector<Row> mine = Allocate(&rows, 4, true);
  std::set<Row> all(others.begin(), others.end());
  all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 14u);
  // The four were allocated before the ten.
  for (const Row row : mine) EXPECT_LT(row, others[0]);
  EXPECT_GT(bytes, 0);
  rows.Unreserve(4);
}

TEST(HostRowsTest, NoMoreIsReservedThanCanBeInUse) {
  HostRows rows(1 << 20);  // 4 MiB each
  const int64_t before = rows.bytes();
  ASSERT_TRUE(rows.Reserve(1000, 0).ok());
  EXPECT_EQ(rows.bytes(), before);
  rows.Unreserve(1000);
  ASSERT_TRUE(rows.Reserve(1000, 2).ok());
  EXPECT_LE(rows.bytes() - before, int64_t{64} << 20);
  rows.Unreserve(1000);
}

TEST(HostRowsTest, MemoryGoesBackWhenRowsAreReturned) {
  HostRows rows(256);
  const int64_t before = rows.bytes();
  const std::vector<Row> all = Allocate(&rows, 20000, false);
  const int64_t full = rows.bytes();
  EXPECT_GT(full - before, 20000 * 1024);
  // Some were freed before and wait for reuse.
  rows.Free(Span<const Row>(all.data(), 5000));
  EXPECT_EQ(rows.bytes(), full);
  rows.Return(Span<const Row>(all.data() + 5000, 15000));
  EXPECT_EQ(rows.in_use(), 0);
  EXPECT_LT(rows.bytes() - before, (full - before) / 4);
}

TEST(HostRowsTest, WiderRowsKeepWhatTheyHad) {
  HostRows rows(2);
  const std::vector<Row> all = Allocate(&rows, 100, false);
  for (const Row row : all) {
    rows.floats(row)[0] = rows.floats(row)[1] = static_cast<float>(row);
    rows.set_rank(row, row + 1);
  }
  ASSERT_TRUE(rows.Relayout(4, [](float* row) { row[2] = row[3] = 5; }).ok());
  EXPECT_EQ(rows.floats_per_row(), 4);
  for (const Row row : all) {
    EXPECT_EQ(rows.floats(row)[1], static_cast<float>(row));
    EXPECT_EQ(rows.floats(row)[3], 5.0f);
    EXPECT_EQ(rows.rank(row), row + 1);
  }
}

}  // namespace
}  // namespace ev

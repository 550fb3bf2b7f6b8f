// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/hbm_dram_ssd/memory_host_rows.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

using Row = HostRows::Row;

std::vector<Row> Allocate(HostRows* rows, int count, bool is_reserved) {
  std::vector<Row> got(count);
  for (Row& row : got) EXPECT_TRUE(rows->Allocate(0, is_reserved, &row).ok());
  return got;
}

int64_t InUse(const HostRows& rows) {
  TierStats stats, below;
  rows.AddStats(&stats, &below);
  return stats.stored_rows;
}

// Writes row i as [i, i, ...] with rank i + 1.
void WriteNumbers(HostRows* rows, const std::vector<Row>& which, size_t width) {
  std::vector<float> floats;
  std::vector<uint32_t> ranks;
  for (const Row row : which) {
    floats.insert(floats.end(), width, static_cast<float>(row));
    ranks.push_back(row + 1);
  }
  ASSERT_TRUE(rows->Write(which, false, floats.data(), ranks.data()).ok());
}

TEST(MemoryHostRowsTest, RowsThatAreFreedAreGivenOutAgain) {
  MemoryHostRows rows(3);
  const std::vector<Row> first = Allocate(&rows, 5, false);
  EXPECT_EQ(InUse(rows), 5);
  rows.Free(first);
  EXPECT_EQ(InUse(rows), 0);
  const std::vector<Row> second = Allocate(&rows, 5, false);
  EXPECT_EQ(std::set<Row>(first.begin(), first.end()),
            std::set<Row>(second.begin(), second.end()));
}

TEST(MemoryHostRowsTest, ReadsWhatWasWritten) {
  MemoryHostRows rows(3);
  const std::vector<Row> all = Allocate(&rows, 1000, false);
  WriteNumbers(&rows, all, 3);
  rows.SetRank(all[7], 99);
  std::vector<float> floats(all.size() * 3);
  std::vector<uint32_t> ranks(all.size());
  ASSERT_TRUE(rows.Read(all, floats.data(), ranks.data()).ok());
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(floats[3 * i], static_cast<float>(all[i]));
    ASSERT_EQ(floats[3 * i + 2], static_cast<float>(all[i]));
    ASSERT_EQ(ranks[i], i == 7 ? 99 : all[i] + 1);
  }
  const HostRows::ReadLock lock = rows.KeepContents();
  size_t visited = 0;
  const auto visit = [&](size_t k, const float* row) {
    EXPECT_EQ(k, visited++);
    EXPECT_EQ(row[1], static_cast<float>(all[k]));
  };
  ASSERT_TRUE(rows.Visit(all, visit).ok());
  EXPECT_EQ(visited, all.size());
}

TEST(MemoryHostRowsTest, ReservedRowsAreKeptForTheReservation) {
  MemoryHostRows rows(3);
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

TEST(MemoryHostRowsTest, NoMoreIsReservedThanCanBeInUse) {
  MemoryHostRows rows(1 << 20);  // 4 MiB each
  const int64_t before = rows.bytes();
  ASSERT_TRUE(rows.Reserve(1000, 0).ok());
  EXPECT_EQ(rows.bytes(), before);
  rows.Unreserve(1000);
  ASSERT_TRUE(rows.Reserve(1000, 2).ok());
  EXPECT_LE(rows.bytes() - before, int64_t{64} << 20);
  rows.Unreserve(1000);
}

TEST(MemoryHostRowsTest, MemoryGoesBackWhenRowsAreForgotten) {
  MemoryHostRows rows(256);
  const int64_t before = rows.bytes();
  const std::vector<Row> all = Allocate(&rows, 20000, false);
  const int64_t full = rows.bytes();
  EXPECT_GT(full - before, 20000 * 1024);
  // Some were freed before and wait for reuse.
  rows.Free(Span<const Row>(all.data(), 5000));
  EXPECT_EQ(rows.bytes(), full);
  rows.Forget({}, Span<const Row>(all.data() + 5000, 15000));
  EXPECT_EQ(InUse(rows), 0);
  EXPECT_LT(rows.bytes() - before, (full - before) / 4);
}

TEST(MemoryHostRowsTest, WiderRowsKeepWhatTheyHad) {
  MemoryHostRows rows(2);
  const std::vector<Row> all = Allocate(&rows, 100, false);
  WriteNumbers(&rows, all, 2);
  ASSERT_TRUE(rows.AddSlots(std::vector<float>{5, 6}).ok());
  std::vector<float> floats(all.size() * 6);
  std::vector<uint32_t> ranks(all.size());
  ASSERT_TRUE(rows.Read(all, floats.data(), ranks.data()).ok());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(floats[6 * i + 1], static_cast<float>(all[i]));
    EXPECT_EQ(floats[6 * i + 3], 5.0f);
    EXPECT_EQ(floats[6 * i + 4], 6.0f);
    EXPECT_EQ(ranks[i], all[i] + 1);
  }
  ASSERT_TRUE(rows.RemoveSlots(2).ok());
  ASSERT_TRUE(rows.Read(all, floats.data(), ranks.data()).ok());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(floats[2 * i + 1], static_cast<float>(all[i]));
  }
}

}  // namespace
}  // namespace ev

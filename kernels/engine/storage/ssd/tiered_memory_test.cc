// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// TieredRows and RowFile when memory is short. An allocation that fails in the
// middle of a call must leave no row held, moving or without a cache slot, and
// no room reserved.

#include <unistd.h>

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/storage/ssd/row_file.h"
#include "kernels/engine/storage/ssd/tiered_rows.h"
#include "kernels/engine/testing/failing_allocations.h"

namespace ev {
namespace {

using testing::allocations_left;

constexpr int64_t kDim = 4;
constexpr RowHandle kRows = 400;

class TieredMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path =
        ::testing::TempDir() + "/tiered-memory-" + std::to_string(getpid());
    TieredRowsOptions options;
    ASSERT_TRUE(RowDirectory::Open(path, "v", &options.directory).ok());
    options.dim = kDim;
    options.memory_bytes = 64 * (kDim * sizeof(float) + 20);
    const std::vector<float> defaults(kDim, 0.5f);
    options.default_rows = defaults;
    options.compacts_in_thread = false;
    ASSERT_TRUE(TieredRows::Create(options, &rows_).ok());
    for (RowHandle h = 0; h < kRows; ++h) {
      ASSERT_TRUE(rows_->NewRow(h, 0).ok());
      all_.push_back(h);
    }
    expected_.assign(kRows, 0.5f);
  }

  // Adds one to each of the rows. Throws std::bad_alloc.
  Status Add(const std::vector<RowHandle>& handles) {
    std::vector<float*> rows(handles.size());
    std::vector<TieredRows::CacheSlot> cache_slots(handles.size());
    TieredRows::Holding holding;
    for (size_t done = 0; done < handles.size();) {
      size_t held = 0;
      EV_RETURN_IF_ERROR(rows_->Hold(
          Span<const RowHandle>(handles.data() + done, handles.size() - done),
          false, rows.data(), cache_slots.data(), &held, &holding));
      rows_->Wrote(Span<const TieredRows::CacheSlot>(cache_slots.data(), held));
      for (size_t i = 0; i < held; ++i) {
        *rows[i] += 1;
        expected_[handles[done + i]] += 1;
      }
      holding.Release();
      done += held;
    }
    return Status::OK();
  }

  // Every row has its expected value, every row can be moved to the file, and
  // every cache slot can be used.
  void ExpectWhole() {
    std::vector<float> values(kRows);
    ASSERT_TRUE(rows_->Copy(all_, 0, 1, values.data()).ok());
    ASSERT_EQ(values, expected_);
    ASSERT_TRUE(rows_->Flush().ok());
    ASSERT_EQ(rows_->stats().memory_rows, 0);
    ASSERT_EQ(rows_->stats().file_rows, kRows);
    // Hold as many rows as there are cache slots, at once.
    std::vector<float*> rows(rows_->capacity());
    std::vector<TieredRows::CacheSlot> cache_slots(rows_->capacity());
    size_t held = 0;
    TieredRows::Holding holding;
    ASSERT_TRUE(rows_
                    ->Hold(Span<const RowHandle>(all_.data(), rows.size()),
                           false, rows.data(), cache_slots.data(), &held,
                           &holding)
                    .ok());
    ASSERT_EQ(held, rows.size());
  }

  std::unique_ptr<TieredRows> rows_;
  std::vector<RowHandle> all_;
  std::vector<float> expected_;
};

TEST_F(TieredMemoryTest, AnAllocationThatFailsLeavesNoRowHeld) {
  ASSERT_TRUE(Add(all_).ok());
  int failures = 0;
  bool ended = false;
  for (int64_t at = 0; !ended; ++at) {
    SCOPED_TRACE(at);
    // Some rows in memory, and many that are not.
    std::vector<RowHandle> some;
    for (RowHandle h = 0; h < 60; ++h) some.push_back((h * 7 + at) % kRows);
    allocations_left = at;
    try {
      const Status status = Add(some);
      ended = status.ok() && allocations_left >= 0;
      if (!ended) ++failures;
    } catch (const std::bad_alloc&) {
      ++failures;
    }
    allocations_left = -1;
    ExpectWhole();
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(failures, 10);
}

TEST_F(TieredMemoryTest, AnAllocationThatFailsLeavesNoRowKept) {
  ASSERT_TRUE(Add(all_).ok());
  const size_t half = rows_->capacity() / 2;
  int failures = 0;
  bool ended = false;
  for (int64_t at = 0; !ended; ++at) {
    SCOPED_TRACE(at);
    std::vector<RowHandle> some;
    for (size_t i = 0; i < half; ++i) some.push_back((i * 5 + at) % kRows);
    std::vector<const float*> rows(half);
    bool all = false;
    {
      TieredRows::Holding kept;
      allocations_left = at;
      try {
        ended = rows_->Keep(some, rows.data(), &all, &kept).ok() &&
                allocations_left >= 0;
        if (!ended) ++failures;
      } catch (const std::bad_alloc&) {
        ++failures;
      }
      allocations_left = -1;
      if (ended) {
        ASSERT_TRUE(all);
      }
    }
    ExpectWhole();
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(failures, 5);
}

TEST_F(TieredMemoryTest, NewSlotsThatFailLeaveTheRows) {
  ASSERT_TRUE(Add(all_).ok());
  const std::vector<SlotShape> initial = {{7, kDim}};
  int failures = 0;
  for (bool ended = false; !ended; ++failures) {
    SCOPED_TRACE(failures);
    allocations_left = failures;
    try {
      ended = rows_->SetSlots(initial).ok();
    } catch (const std::bad_alloc&) {
    }
    allocations_left = -1;
    ExpectWhole();
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(failures, 3);
  std::vector<float> slots(kRows * kDim);
  ASSERT_TRUE(rows_->Copy(all_, kDim, kDim, slots.data()).ok());
  EXPECT_EQ(slots, std::vector<float>(slots.size(), 7.0f));
}

bool NoSpace(int64_t) { return false; }

TEST(RowFileMemoryTest, AReservationWithoutMemoryKeepsNoRoom) {
  const std::string path =
      ::testing::TempDir() + "/file-memory-" + std::to_string(getpid());
  RowFileOptions options;
  ASSERT_TRUE(RowDirectory::Open(path, "v", &options.directory).ok());
  std::unique_ptr<RowFile> file;
  ASSERT_TRUE(RowFile::Create(options, &file).ok());
  ASSERT_TRUE(file->SetFloats(kDim).ok());
  const int64_t records = RecordFormat::Of(kDim, file->segment_bytes()).records;
  int failures = 0;
  for (int64_t at = 0;; ++at) {
    allocations_left = at;
    const Status status = file->Reserve(5 * records);
    allocations_left = -1;
    if (status.ok()) break;
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    ++failures;
  }
  EXPECT_GT(failures, 3);
  file->Unreserve(5 * records);
  // All room can be used without a reservation.
  RowFile::SetSpaceHookForTesting(&NoSpace);
  const std::vector<float> row(kDim, 0.5f);
  for (int64_t i = 0; i < 5 * records; ++i) {
    RecordNumber record;
    ASSERT_TRUE(file->Append(0, 0, row.data(), false, &record).ok()) << i;
  }
  RowFile::SetSpaceHookForTesting(nullptr);
}

}  // namespace
}  // namespace ev

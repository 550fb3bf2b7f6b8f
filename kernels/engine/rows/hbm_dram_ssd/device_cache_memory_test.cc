// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows in the memory of a device and of the CPU when CPU memory is short. An
// allocation that fails in the middle of a call must leave no row held or
// moving, and no cache slot without use: later calls would wait for it forever.

#include <functional>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/rows/gpu_row_home.h"
#include "kernels/engine/rows/hbm_dram_ssd/memory_host_rows.h"
#include "kernels/engine/testing/failing_allocations.h"
#include "kernels/engine/testing/host_device_rows.h"

namespace ev {
namespace {

using testing::allocations_left;

// Wide rows: bytes() counts pages.
constexpr int64_t kDim = 64;
constexpr int64_t kCacheSlots = 64;
constexpr RowHandle kRows = 300;

class DeviceCacheMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::vector<float> defaults(kDim, 0.5f);
    RowHomeOptions options;
    options.dim = kDim;
    options.default_rows = defaults;
    options.memory_bytes = kCacheSlots * kDim * sizeof(float);
    all_.clear();
    ASSERT_TRUE(MakeRowsAboveMemory(options, &rows_).ok());
    for (RowHandle h = 0; h < kRows; ++h) {
      ASSERT_TRUE(rows_->NewRow(h, 0).ok());
      all_.push_back(h);
    }
    expected_.assign(kRows * kDim, 0.5f);
  }

  // Some rows on the device, and more that are not.
  static std::vector<RowHandle> Some(int64_t at) {
    std::vector<RowHandle> some;
    for (RowHandle h = 0; h < 100; ++h) some.push_back((h * 7 + at) % kRows);
    return some;
  }

  // Every row has its expected value, and all cache slots can be held at once.
  void ExpectWhole() {
    std::vector<float> values(kRows * kDim);
    float* out = values.data();
    const int column = 0;
    ASSERT_TRUE(rows_
                    ->ReadColumnsOnce(all_, Span<const int>(&column, 1),
                                      Span<float* const>(&out, 1))
                    .ok());
    ASSERT_EQ(values, expected_);
    for (RowHandle begin = 0; begin + kCacheSlots <= kRows;
         begin += kCacheSlots) {
      std::vector<RowHandle> gpu_handles(kCacheSlots);
      std::unique_ptr<RowHold> hold;
      bool placed = false;
      // Another thread may still evict rows, whose cache slots are not free
      // yet.
      for (int tries = 0; tries < 1000 && !placed; ++tries) {
        ASSERT_TRUE(rows_->gpu()
                        ->PlaceRows(Span<const RowHandle>(all_.data() + begin,
                                                          kCacheSlots),
                                    false, gpu_handles.data(), &hold, &placed)
                        .ok());
      }
      ASSERT_TRUE(placed);
    }
  }

  // Lets the first, second, ... allocation of a call fail until none does.
  void FailEach(int least, const std::function<Status(int64_t at)>& call,
                const std::function<void(int64_t at)>& again) {
    int failures = 0;
    bool ended = false;
    for (int64_t at = 0; !ended; ++at) {
      SCOPED_TRACE(at);
      allocations_left = at;
      const Status status = call(at);
      const bool failed = allocations_left < 0;
      allocations_left = -1;
      ended = status.ok() && !failed;
      if (failed) ++failures;
      if (!status.ok()) {
        ASSERT_EQ(status.code(), StatusCode::kResourceExhausted)
            << status.message();
      }
      again(at);
      ExpectWhole();
      if (HasFatalFailure()) return;
    }
    EXPECT_GE(failures, least);
  }

  std::unique_ptr<RowHome> rows_;
  std::vector<RowHandle> all_;
  std::vector<float> expected_;
};

TEST_F(DeviceCacheMemoryTest, AWriteThatFailsLeavesNoRowHeld) {
  std::vector<RowHandle> some;
  std::vector<float> values;
  const auto write = [&](int64_t at) {
    const int64_t left = allocations_left;
    allocations_left = -1;
    some = Some(at);
    values.assign(some.size() * kDim, static_cast<float>(at));
    allocations_left = left;
    return rows_->Write(some, 0, values.data());
  };
  // A part of the rows may have been written.
  FailEach(20, write, [&](int64_t at) {
    ASSERT_TRUE(rows_->Write(some, 0, values.data()).ok());
    for (const RowHandle h : some) {
      for (int64_t d = 0; d < kDim; ++d) {
        expected_[h * kDim + d] = static_cast<float>(at);
      }
    }
  });
}

TEST_F(DeviceCacheMemoryTest, AReadThatFailsLeavesNoRowHeld) {
  const std::vector<float> values(kRows * kDim, 3.0f);
  ASSERT_TRUE(rows_->Write(all_, 0, values.data()).ok());
  expected_ = values;
  std::vector<float> out(100 * kDim);
  std::vector<RowHandle> some;
  const auto read = [&](int64_t at) {
    const int64_t left = allocations_left;
    allocations_left = -1;
    some = Some(at);
    allocations_left = left;
    return rows_->Read(some, 0, out.data());
  };
  FailEach(10, read, [&](int64_t) {
    ASSERT_TRUE(rows_->Read(some, 0, out.data()).ok());
    ASSERT_EQ(out, std::vector<float>(out.size(), 3.0f));
  });
}

TEST_F(DeviceCacheMemoryTest, ACopyThatFailsLeavesNoRowHeld) {
  const std::vector<float> values(kRows * kDim, 3.0f);
  ASSERT_TRUE(rows_->Write(all_, 0, values.data()).ok());
  expected_ = values;
  std::vector<float> out(kRows * kDim);
  std::vector<double> squares(kRows);
  const auto copy = [&](int64_t) {
    float* to = out.data();
    const int column = 0;
    EV_RETURN_IF_ERROR(rows_->ReadColumnsOnce(all_, Span<const int>(&column, 1),
                                              Span<float* const>(&to, 1)));
    return rows_->SquaredNorms(all_, squares.data());
  };
  FailEach(8, copy, [&](int64_t at) { ASSERT_TRUE(copy(at).ok()); });
  EXPECT_EQ(squares[kRows - 1], 9 * kDim);
}

TEST_F(DeviceCacheMemoryTest, ANewSlotThatFailsLeavesTheRows) {
  const std::vector<float> values(kRows * kDim, 3.0f);
  ASSERT_TRUE(rows_->Write(all_, 0, values.data()).ok());
  expected_ = values;
  const std::vector<float> initial = {0.25f};
  const auto add = [&](int64_t at) {
    const int64_t left = allocations_left;
    allocations_left = -1;
    // Rows that only the device has.
    EXPECT_TRUE(rows_->Write(Some(at), 0, values.data()).ok());
    allocations_left = left;
    return rows_->Relayout(initial);
  };
  FailEach(5, add, [](int64_t) {});
  std::vector<float> slot(kRows * kDim);
  ASSERT_TRUE(rows_->Read(all_, 1, slot.data()).ok());
  EXPECT_EQ(slot, std::vector<float>(slot.size(), 0.25f));
}

TEST_F(DeviceCacheMemoryTest, AFirstReservationThatFailsLosesNoCacheSlot) {
  const auto reserve = [&](int64_t) {
    const int64_t left = allocations_left;
    allocations_left = -1;
    SetUp();
    allocations_left = left;
    EV_RETURN_IF_ERROR(rows_->Reserve(kCacheSlots));
    rows_->Unreserve(kCacheSlots);
    return Status::OK();
  };
  FailEach(5, reserve, [](int64_t) {});
}

TEST_F(DeviceCacheMemoryTest, AReservationThatFailsKeepsNothing) {
  const auto reserve = [&](int64_t) {
    EV_RETURN_IF_ERROR(rows_->Reserve(kCacheSlots));
    rows_->Unreserve(kCacheSlots);
    return Status::OK();
  };
  FailEach(2, reserve, [](int64_t) {});
  ASSERT_TRUE(reserve(0).ok());
  const int64_t bytes = rows_->bytes();
  // A reservation that was kept would have taken CPU memory for more rows.
  SetUp();
  ASSERT_TRUE(reserve(0).ok());
  ExpectWhole();
  EXPECT_EQ(bytes, rows_->bytes());
}

}  // namespace
}  // namespace ev

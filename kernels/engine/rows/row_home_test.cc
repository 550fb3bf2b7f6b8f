// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares every home of rows (row_home.h) with arrays in this test.

#include "kernels/engine/rows/row_home.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/optimizer/row_rule.h"
#include "kernels/engine/policy/eviction.h"
#include "kernels/engine/rows/gpu_compute.h"
#include "kernels/engine/rows/make_row_home.h"
#include "kernels/engine/testing/storage_under_test.h"

namespace ev {
namespace {

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

constexpr int64_t kDim = 5;
constexpr int64_t kDefaultRows = 3;

using Row = std::vector<float>;  // value, then the slots

bool SameBits(const float* a, const float* b, size_t n) {
  return std::memcmp(a, b, n * sizeof(float)) == 0;
}

class RowHomeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int64_t i = 0; i < kDefaultRows * kDim; ++i) {
      defaults_.push_back(0.25f * static_cast<float>(i) - 1.5f);
    }
    TableOptions table;
    table.dim = kDim;
    testing::PutUnderTest(&table);
    RowHomeOptions options;
    static_cast<RowStorageOptions&>(options) = table;
    options.name = "t";
    options.dim = kDim;
    options.default_rows = defaults_;
    options.with_meta = true;
    ASSERT_OK(MakeRowHome(options, &rows_));
    EXPECT_EQ(rows_.storage, options.storage);
    EXPECT_EQ(rows_.why_not_on_gpu, "");
  }

  RowHome* home() { return rows_.home.get(); }
  bool HasRowsBelow() {
    return home()->gpu() != nullptr && home()->gpu()->below() != nullptr;
  }
  void Forget(const std::vector<RowHandle>& handles) {
    if (HasRowsBelow()) {
      const std::vector<int64_t> keys(handles.begin(), handles.end());
      home()->gpu()->ForgetKeys(keys);
    }
    home()->Forget(handles);
  }

  // Creates n new rows.
  void MakeRows(int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      RowHandle handle;
      ASSERT_OK(rows_.handles->Allocate(&handle));
      const int64_t r = (next_++ * 7) % kDefaultRows;
      // If the GPU does not access all rows, those without a key are below.
      if (HasRowsBelow() && i % 2 == 0) {
        ASSERT_OK(home()->gpu()->NewKeyedRow(handle, handle, r));
      } else {
        ASSERT_OK(home()->NewRow(handle, r));
      }
      Row row(defaults_.begin() + r * kDim, defaults_.begin() + (r + 1) * kDim);
      for (size_t s = 0; s < initial_.size(); ++s) {
        row.insert(row.end(), SlotWidth(s), initial_[s]);
      }
      expected_[handle] = row;
    }
  }
  void SetSlots(const std::vector<float>& initial) {
    std::vector<SlotShape> slots;
    for (size_t s = 0; s < initial.size(); ++s) {
      slots.push_back({initial[s], SlotWidth(s)});
    }
    ASSERT_OK(home()->Relayout(slots));
    for (auto& row : expected_) {
      for (size_t s = initial_.size(); s < initial.size(); ++s) {
        row.second.insert(row.second.end(), SlotWidth(s), initial[s]);
      }
    }
    initial_ = initial;
  }
  // The second slot has one number per row.
  static int64_t SlotWidth(size_t slot) { return slot == 1 ? 1 : kDim; }
  static int64_t WidthOf(int column) {
    return column == 0 ? kDim : SlotWidth(column - 1);
  }
  static int64_t OffsetOf(int column) {
    int64_t offset = 0;
    for (int c = 0; c < column; ++c) offset += WidthOf(c);
    return offset;
  }
  std::vector<RowHandle> Handles() const {
    std::vector<RowHandle> handles;
    for (const auto& row : expected_) handles.push_back(row.first);
    return handles;
  }
  // Every second row, and handles without a row in between.
  std::vector<RowHandle> SomeHandles() const {
    std::vector<RowHandle> handles;
    for (const auto& row : expected_) {
      const bool left_out = handles.size() % 2 == 1;
      handles.push_back(left_out ? AbsentAs(1) : row.first);
    }
    handles.push_back(kNoRow);
    return handles;
  }

  void ExpectAll(const std::string& when) {
    const std::vector<RowHandle> handles = Handles();
    const int num_columns = 1 + static_cast<int>(initial_.size());
    for (int column = 0; column < num_columns; ++column) {
      const int64_t width = WidthOf(column);
      std::vector<float> read(handles.size() * width);
      ASSERT_OK(home()->Read(handles, column, read.data()));
      for (size_t i = 0; i < handles.size(); ++i) {
        ASSERT_TRUE(SameBits(read.data() + i * width,
                             expected_[handles[i]].data() + OffsetOf(column),
                             width))
            << when << ", column " << column << " of row " << handles[i];
      }
    }
  }

  std::vector<float> defaults_;
  TableRows rows_;
  std::vector<float> initial_;
  std::map<RowHandle, Row> expected_;
  int64_t next_ = 0;
};

TEST_F(RowHomeTest, ANewRowIsItsDefaultRowAndTheSlotsInitialValues) {
  ASSERT_NO_FATAL_FAILURE(MakeRows(10));
  ASSERT_NO_FATAL_FAILURE(ExpectAll("without slots"));
  ASSERT_NO_FATAL_FAILURE(SetSlots({0.5f, -2.0f}));
  ASSERT_NO_FATAL_FAILURE(MakeRows(300));
  ExpectAll("with slots");
}

TEST_F(RowHomeTest, RowsKeepWhatTheyHoldWhenTheyGetSlots) {
  ASSERT_NO_FATAL_FAILURE(MakeRows(200));
  ASSERT_NO_FATAL_FAILURE(SetSlots({1.0f}));
  ASSERT_NO_FATAL_FAILURE(ExpectAll("one slot"));
  ASSERT_NO_FATAL_FAILURE(SetSlots({1.0f, 2.0f, 3.0f}));
  ASSERT_NO_FATAL_FAILURE(ExpectAll("three slots"));
  // Applies to new rows only.
  ASSERT_NO_FATAL_FAILURE(SetSlots({9.0f, 2.0f, 3.0f}));
  ASSERT_NO_FATAL_FAILURE(MakeRows(5));
  ExpectAll("another initial value");
}

TEST_F(RowHomeTest, ReadsWhatWasWritten) {
  ASSERT_NO_FATAL_FAILURE(SetSlots({0.0f, 0.0f}));
  ASSERT_NO_FATAL_FAILURE(MakeRows(400));
  std::vector<RowHandle> handles = Handles();
  std::reverse(handles.begin(), handles.end());
  ASSERT_OK(home()->Reserve(handles.size()));
  for (int column : {2, 0, 1}) {
    const int64_t width = WidthOf(column);
    std::vector<float> in(handles.size() * width);
    for (size_t i = 0; i < in.size(); ++i) {
      in[i] = static_cast<float>(i) + 1000.0f * static_cast<float>(column);
    }
    ASSERT_OK(home()->Write(handles, column, in.data()));
    for (size_t i = 0; i < handles.size(); ++i) {
      std::copy_n(in.data() + i * width, width,
                  expected_[handles[i]].data() + OffsetOf(column));
    }
  }
  home()->Unreserve(handles.size());
  ASSERT_NO_FATAL_FAILURE(ExpectAll("after writes"));

  const std::vector<int> columns = {2, 0};
  const int64_t width = WidthOf(2);
  std::vector<float> slot(handles.size() * width);
  std::vector<float> value(handles.size() * kDim);
  const std::vector<float*> out = {slot.data(), value.data()};
  ASSERT_OK(home()->ReadColumnsOnce(handles, columns, out));
  for (size_t i = 0; i < handles.size(); ++i) {
    const Row& row = expected_[handles[i]];
    EXPECT_TRUE(
        SameBits(slot.data() + i * width, row.data() + OffsetOf(2), width));
    EXPECT_TRUE(SameBits(value.data() + i * kDim, row.data(), kDim));
  }
}

TEST_F(RowHomeTest, AHandleOfNoRowIsPassedOver) {
  ASSERT_NO_FATAL_FAILURE(SetSlots({0.125f}));
  ASSERT_NO_FATAL_FAILURE(MakeRows(50));
  const std::vector<RowHandle> handles = SomeHandles();
  std::vector<float> read(handles.size() * kDim);
  ASSERT_OK(home()->Read(handles, 0, read.data()));
  for (size_t i = 0; i < handles.size(); ++i) {
    if (handles[i] >= kFirstReservedHandle) continue;
    EXPECT_TRUE(
        SameBits(read.data() + i * kDim, expected_[handles[i]].data(), kDim));
  }
  ASSERT_OK(home()->Read(Span<const RowHandle>(), 0, nullptr));
}

TEST_F(RowHomeTest, HeldRowsAreTheRows) {
  ASSERT_NO_FATAL_FAILURE(SetSlots({0.125f}));
  ASSERT_NO_FATAL_FAILURE(MakeRows(20));
  const std::vector<RowHandle> handles = SomeHandles();
  const float nothing = 0.0f;
  std::vector<const float*> rows(handles.size(), &nothing);
  std::unique_ptr<RowHold> hold;
  bool held = false;
  ASSERT_OK(home()->Hold(handles, rows.data(), &hold, &held));
  EXPECT_EQ(held, home()->gpu() == nullptr);
  if (home()->costs().calls_are_cheap) {
    EXPECT_EQ(hold, nullptr);
  }
  for (size_t i = 0; i < handles.size(); ++i) {
    if (held && handles[i] < kFirstReservedHandle) {
      // Value and slots are adjacent.
      EXPECT_TRUE(SameBits(rows[i], expected_[handles[i]].data(), 2 * kDim));
    } else {
      EXPECT_EQ(rows[i], &nothing);
    }
  }
}

TEST_F(RowHomeTest, NormsAreSummedInOrder) {
  ASSERT_NO_FATAL_FAILURE(MakeRows(700));
  const std::vector<RowHandle> handles = Handles();
  std::vector<float> in(handles.size() * kDim);
  for (size_t i = 0; i < in.size(); ++i) {
    in[i] = 1.0f / static_cast<float>(1 + i % 97);
  }
  ASSERT_OK(home()->Write(handles, 0, in.data()));
  std::vector<double> squares(handles.size());
  ASSERT_OK(home()->SquaredNorms(handles, squares.data()));
  for (size_t i = 0; i < handles.size(); ++i) {
    EXPECT_EQ(squares[i], SumOfSquares(in.data() + i * kDim, kDim)) << i;
  }
}

TEST_F(RowHomeTest, ARuleTrainsRowsAsItTrainsArrays) {
  struct Case {
    const char* name;
    std::vector<float> hyper;
    std::vector<int> slot_columns;
  };
  const std::vector<Case> cases = {
      {"SGD", {0.1f}, {}},
      {"Adagrad", {0.1f}, {2}},
      {"Adam", {0.01f, 0.9f, 0.999f, 1e-8f, 0.9f, 0.999f}, {2, 0}},
      {"RowWiseAdagrad", {0.1f, 1e-8f}, {1}}};
  ASSERT_NO_FATAL_FAILURE(SetSlots({0.5f, 0.25f, 0.125f}));
  ASSERT_NO_FATAL_FAILURE(MakeRows(600));
  std::vector<RowHandle> handles = SomeHandles();
  std::reverse(handles.begin(), handles.end());
  for (const Case& c : cases) {
    std::unique_ptr<const RowRule> rule;
    ASSERT_OK(MakeRowRule(c.name, c.hyper, &rule));
    EXPECT_EQ(rule->hyper().size(), c.hyper.size());
    std::vector<float> grads(handles.size() * kDim);
    for (size_t i = 0; i < grads.size(); ++i) {
      grads[i] = static_cast<float>(i % 13) - 6.0f;
    }
    ASSERT_OK(home()->Reserve(handles.size()));
    ASSERT_OK(
        home()->Apply(*rule, handles, c.slot_columns, grads.data(), nullptr));
    home()->Unreserve(handles.size());
    std::vector<int64_t> offsets;
    for (int column : c.slot_columns) offsets.push_back(OffsetOf(1 + column));
    for (size_t i = 0; i < handles.size(); ++i) {
      if (handles[i] >= kFirstReservedHandle) continue;
      float* const row = expected_[handles[i]].data();
      RowBlock block;
      block.rows = &row;
      block.grads = grads.data() + i * kDim;
      block.num_rows = 1;
      block.dim = kDim;
      block.slot_offsets = offsets.data();
      rule->Apply(block);
    }
    ASSERT_NO_FATAL_FAILURE(ExpectAll(c.name));
  }
}

TEST_F(RowHomeTest, AForgottenRowIsGoneAndItsHandleNamesANewOne) {
  ASSERT_NO_FATAL_FAILURE(SetSlots({0.5f}));
  ASSERT_NO_FATAL_FAILURE(MakeRows(100));
  const std::vector<RowHandle> handles = Handles();
  std::vector<float> in(handles.size() * kDim, 42.0f);
  ASSERT_OK(home()->Write(handles, 0, in.data()));
  ASSERT_OK(home()->Write(handles, 1, in.data()));
  Forget(handles);
  rows_.handles->Free(handles);
  expected_.clear();
  ASSERT_NO_FATAL_FAILURE(MakeRows(150));
  ExpectAll("after rows went");
}

TEST_F(RowHomeTest, AClearedHomeIsEmptyAndKeepsItsSlots) {
  ASSERT_NO_FATAL_FAILURE(SetSlots({0.5f}));
  ASSERT_NO_FATAL_FAILURE(MakeRows(3000));
  const int64_t full = home()->bytes() + rows_.handles->bytes();
  home()->Clear();
  rows_.handles->Clear();
  expected_.clear();
  EXPECT_LT(home()->bytes() + rows_.handles->bytes(), full);
  ASSERT_NO_FATAL_FAILURE(MakeRows(10));
  ExpectAll("after Clear");
}

TEST_F(RowHomeTest, OnlyHomesWithSeveralTiersHaveTiers) {
  ASSERT_NO_FATAL_FAILURE(MakeRows(8));
  RowTiers* const tiers = home()->tiers();
  const bool has_some = rows_.storage == RowStorage::kDramSsd ||
                        rows_.storage == RowStorage::kHbmDram ||
                        rows_.storage == RowStorage::kHbmDramSsd;
  ASSERT_EQ(tiers != nullptr, has_some);
  if (tiers == nullptr) return;
  const std::vector<RowHandle> handles = Handles();
  if (HasRowsBelow()) {
    const std::vector<int64_t> keys(handles.begin(), handles.end());
    RowsBelow::Brought brought;
    ASSERT_OK(home()->gpu()->below()->Bring(keys, handles, nullptr, nullptr,
                                            &brought));
    EXPECT_TRUE(brought.fits);
    EXPECT_FALSE(brought.moved_below);
  }
  ASSERT_OK(tiers->Prefetch(handles));
  for (RowHandle handle : handles) EXPECT_EQ(tiers->TierOf(handle), 0);
  EXPECT_EQ(tiers->tier_stats().memory_rows, 8);
}

TEST_F(RowHomeTest, CostsFitTheHome) {
  const RowHomeCosts& costs = home()->costs();
  EXPECT_GT(costs.rows_per_copy, 0);
  EXPECT_GT(costs.rows_per_hold, 0);
  EXPECT_GT(costs.floats_per_update, 0);
  EXPECT_GT(costs.rows_per_apply, 0);
  // A home that pools in GPU memory is one whose rows the CPU cannot hold.
  EXPECT_EQ(home()->gpu() != nullptr,
            rows_.storage == RowStorage::kHbm ||
                rows_.storage == RowStorage::kHbmDram ||
                rows_.storage == RowStorage::kHbmDramSsd);
  EXPECT_EQ(home()->gpu_table() != nullptr,
            rows_.storage == RowStorage::kHbm ||
                rows_.storage == RowStorage::kHbmDram);
}

}  // namespace
}  // namespace ev

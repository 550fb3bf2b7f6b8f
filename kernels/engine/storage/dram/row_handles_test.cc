// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Handles of rows whose floats are stored elsewhere. row_store_test.cc tests
// those of a RowStore.

#include "kernels/engine/storage/dram/row_handles.h"

#include <algorithm>
#include <map>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/testing/failing_allocations.h"

namespace ev {
namespace {

std::vector<RowHandle> Allocate(RowHandles* handles, int64_t n) {
  std::vector<RowHandle> given(n);
  for (RowHandle& handle : given) EXPECT_TRUE(handles->Allocate(&handle).ok());
  return given;
}

TEST(RowHandlesTest, HandlesAreDenseAndAscending) {
  RowHandles handles(/*with_meta=*/true);
  const std::vector<RowHandle> given = Allocate(&handles, 1000);
  for (size_t i = 0; i < given.size(); ++i) ASSERT_EQ(given[i], i);
  EXPECT_EQ(handles.live_rows(), 1000);
}

TEST(RowHandlesTest, AReusedHandleHasZeroMeta) {
  RowHandles handles(/*with_meta=*/true);
  std::vector<RowHandle> given = Allocate(&handles, 300);
  for (RowHandle handle : given) {
    EXPECT_EQ(handles.Meta(handle)->frequency, 0u);
    handles.Meta(handle)->frequency = 7;
    handles.Meta(handle)->version_plus1 = RowMeta::PlusOne(3);
  }
  given.resize(200);
  handles.Free(given);
  EXPECT_EQ(handles.live_rows(), 100);
  for (RowHandle handle : Allocate(&handles, 200)) {
    EXPECT_LT(handle, 200u);
    EXPECT_EQ(handles.Meta(handle)->frequency, 0u);
    EXPECT_EQ(handles.Meta(handle)->version(), -1);
  }
}

TEST(RowHandlesTest, WithoutMetaAHandleCostsNextToNothing) {
  RowHandles handles(/*with_meta=*/false);
  const int64_t before = handles.bytes();
  EXPECT_EQ(handles.Meta(Allocate(&handles, 1000000)[0]), nullptr);
  EXPECT_LE(handles.bytes() - before, 4096);
}

TEST(RowHandlesTest, MetaOfHandlesThatAreFreeGoesBack) {
  constexpr int64_t kRows = 1 << 20;
  RowHandles handles(/*with_meta=*/true);
  const int64_t before = handles.bytes();
  std::vector<RowHandle> given = Allocate(&handles, kRows);
  EXPECT_GE(handles.bytes() - before, kRows * 16);
  EXPECT_LE(handles.bytes() - before, kRows * 17);
  const RowHandle last = given.back();
  handles.Meta(last)->frequency = 5;
  given.pop_back();
  handles.Free(given);
  EXPECT_LE(handles.bytes() - before, kRows * 4);
  EXPECT_EQ(handles.Meta(last)->frequency, 5u);
  // Handles of slabs with live rows are reused before those of a dropped slab.
  EXPECT_GT(Allocate(&handles, 1)[0], last - (RowHandle{1} << 17));
}

TEST(RowHandlesTest, ClearForgetsAll) {
  RowHandles handles(/*with_meta=*/true);
  Allocate(&handles, 5000);
  handles.Clear();
  EXPECT_EQ(handles.live_rows(), 0);
  EXPECT_EQ(Allocate(&handles, 1)[0], 0u);
}

// A store with memory for a limited number of slabs.
class FewSlabs : public RowHandles {
 public:
  explicit FewSlabs(int most)
      : RowHandles(/*rows_log2=*/4, true), left_(most) {}
  int dropped = 0;
  std::map<size_t, size_t> used;  // rows that may be used, by slab

 private:
  void UseRows(size_t slab, size_t rows) override {
    used[slab] = std::max(used[slab], rows);
  }
  bool AddRows(size_t) override { return left_ > 0 && left_-- > 0; }
  void DropRows(size_t) override {
    ++left_;
    ++dropped;
  }
  std::string AnotherRow() const override { return "another row of stone"; }
  int left_;
};

TEST(RowHandlesTest, WithoutMemoryForRowsAllocateFails) {
  FewSlabs handles(2);
  const std::vector<RowHandle> given = Allocate(&handles, 32);
  RowHandle handle = 77;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Status status = handles.Allocate(&handle);
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(status.message(),
              "no memory for another row of stone in addition to 32 rows");
    EXPECT_EQ(handle, 77u);
  }
  handles.Free(given);
  EXPECT_EQ(handles.dropped, 2);
  EXPECT_EQ(Allocate(&handles, 32).size(), given.size());
}

TEST(RowHandlesTest, ARowMayBeUsedBeforeItsHandleIsGiven) {
  FewSlabs handles(100);
  for (int i = 0; i < 300; ++i) {
    const RowHandle handle = Allocate(&handles, 1)[0];
    EXPECT_LT(handle % 16, handles.used[handle / 16]) << handle;
    // Not much more than the handles given, and no slab that has no rows.
    EXPECT_LE(handles.used.size(), static_cast<size_t>(i) / 16 + 2);
  }
  for (const auto& slab_rows : handles.used) EXPECT_LE(slab_rows.second, 16u);
}

TEST(RowHandlesTest, WithoutHostMemoryFreeHandsNoHandleToTwo) {
  bool ended = false;
  for (int64_t at = 0; !ended; ++at) {
    FewSlabs handles(100);
    std::vector<RowHandle> live = Allocate(&handles, 40);
    const std::vector<RowHandle> gone(live.begin() + 10, live.end());
    live.resize(10);
    testing::allocations_left = at;
    try {
      handles.Free(gone);
      ended = testing::allocations_left >= 0;
    } catch (const std::bad_alloc&) {
      EXPECT_EQ(handles.live_rows(), 40);
    }
    testing::allocations_left = -1;
    if (handles.live_rows() == 40) handles.Free(gone);
    for (const RowHandle handle : Allocate(&handles, 100)) {
      live.push_back(handle);
    }
    EXPECT_EQ(std::set<RowHandle>(live.begin(), live.end()).size(), 110u) << at;
  }
}

TEST(RowHandlesTest, AFreeWithReservedMemoryAllocatesNoneThatItNeeds) {
  RowHandles handles(/*with_meta=*/true);
  const std::vector<RowHandle> given = Allocate(&handles, 5000);
  handles.ReserveFree(given.size());
  testing::allocations_left = 0;
  handles.Free(given);
  testing::allocations_left = -1;
  EXPECT_EQ(handles.live_rows(), 0);
}

}  // namespace
}  // namespace ev

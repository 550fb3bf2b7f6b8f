// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Handles of rows whose floats are stored elsewhere. row_store_test.cc tests
// those of a RowStore.

#include "kernels/engine/storage/dram/row_handles.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

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

 private:
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

}  // namespace
}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/tiered/row_states.h"

#include <map>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

TEST(RowStatesTest, EachKindOfStateIsOne) {
  for (const uint32_t row_state :
       {0u, 1u, kInFastTier - 1, kInFastTier, kInFastTier | kPayload, kFresh,
        kFresh | (kPayload - 1), kMoving}) {
    const int kinds = (row_state == 0) + InSlowTier(row_state) +
                      InFastTier(row_state) + IsFresh(row_state) +
                      (row_state == kMoving);
    EXPECT_EQ(kinds, 1) << row_state;
  }
}

TEST(RowStatesTest, AStateExistsOnceItIsMade) {
  RowStates row_states;
  const std::vector<RowHandle> handles = {0, 65536, 600000,
                                          kFirstReservedHandle - 1};
  for (const RowHandle handle : handles) {
    EXPECT_FALSE(row_states.Has(handle)) << handle;
    ASSERT_TRUE(row_states.Make(handle, handle % 7).ok());
    EXPECT_TRUE(row_states.Has(handle));
  }
  EXPECT_FALSE(row_states.Has(kFirstReservedHandle));
  EXPECT_FALSE(row_states.Has(kNoRow));
  std::map<RowHandle, uint32_t> met;
  ASSERT_TRUE(
      row_states
          .ForEach([&](RowHandle handle, std::atomic<uint32_t>* row_state) {
            if (row_state->load() != 0) met[handle] = row_state->load();
            return Status::OK();
          })
          .ok());
  ASSERT_EQ(met.size(), handles.size());
  for (const RowHandle handle : handles) {
    EXPECT_EQ(met[handle], kFresh | (handle % 7));
    EXPECT_EQ(row_states.at(handle)->load(), kFresh | (handle % 7));
  }
}

TEST(RowStatesTest, MemoryIsFreedWhenAllItsStatesAreZero) {
  RowStates row_states;
  const int64_t before = row_states.bytes();
  for (const RowHandle handle : {3u, 4u, 1u << 20, (1u << 20) + 70000}) {
    ASSERT_TRUE(row_states.Make(handle, 0).ok());
  }
  const int64_t full = row_states.bytes();
  EXPECT_GT(full, before + (1 << 18));
  row_states.at(1 << 20)->store(0);
  row_states.DropUnused(std::vector<RowHandle>{1 << 20});
  EXPECT_EQ(row_states.bytes(), full);  // a neighbour is still in use
  row_states.at((1 << 20) + 70000)->store(0);
  row_states.DropUnused(std::vector<RowHandle>{(1 << 20) + 70000, 9999999});
  EXPECT_LT(row_states.bytes(), full);
  EXPECT_FALSE(row_states.Has(1 << 20));
  EXPECT_TRUE(row_states.Has(3));
  ASSERT_TRUE(row_states.Make(1 << 20, 2).ok());
  EXPECT_EQ(row_states.at(1 << 20)->load(), kFresh | 2);
  EXPECT_EQ(row_states.at((1 << 20) + 70000)->load(), 0);
  row_states.Clear();
  EXPECT_FALSE(row_states.Has(3));
}

// This would take minutes if each freed handle searched its whole slab.
TEST(RowStatesTest, ManyHandlesGoAtOnceAndTheLastTakesTheMemoryAlong) {
  constexpr RowHandle kMany = 400000;
  RowStates row_states;
  std::vector<RowHandle> up, down;
  for (RowHandle handle = 0; handle < kMany; ++handle) {
    if (handle != kMany / 2) up.push_back(handle);
  }
  down.assign(up.rbegin(), up.rend());
  for (const std::vector<RowHandle>& order : {up, down}) {
    for (RowHandle handle = 0; handle < kMany; ++handle) {
      ASSERT_TRUE(row_states.Make(handle, 0).ok());
    }
    for (const RowHandle handle : order) row_states.at(handle)->store(0);
    const int64_t full = row_states.bytes();
    row_states.DropUnused(order);
    EXPECT_EQ(row_states.bytes(), full);
    EXPECT_TRUE(row_states.Has(kMany / 2));
    EXPECT_EQ(row_states.at(kMany / 2)->load(), kFresh);
    row_states.at(kMany / 2)->store(0);
    row_states.DropUnused(std::vector<RowHandle>{kMany / 2});
    EXPECT_FALSE(row_states.Has(kMany / 2));
    EXPECT_LT(row_states.bytes(), full - (1 << 20));
  }
}

}  // namespace
}  // namespace ev

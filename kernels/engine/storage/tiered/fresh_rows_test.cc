// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/tiered/fresh_rows.h"

#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

using Floats = std::vector<float>;
using Slots = std::vector<SlotShape>;

TEST(FreshRowsTest, ARowIsItsDefaultRowAndItsSlotsInitialValues) {
  FreshRows fresh(2, Floats{1, 2, 3, 4});
  EXPECT_EQ(fresh.floats(), 2);
  Floats row(2);
  fresh.Fill(1, row.data());
  EXPECT_EQ(row, (Floats{3, 4}));
  fresh.SetShape(RowShape(2, Slots{{0.5f, 2}, {9, 1}, {7, 2}}));
  EXPECT_EQ(fresh.floats(), 7);
  row.resize(7);
  fresh.Fill(0, row.data());
  EXPECT_EQ(row, (Floats{1, 2, 0.5f, 0.5f, 9, 7, 7}));
  EXPECT_EQ(fresh.default_row(1)[0], 3.0f);
}

TEST(FreshRowsTest, SlotsKeepTheirInitialValuesToTheBit) {
  FreshRows fresh(1, Floats{0});
  EXPECT_TRUE(fresh.KeepsSlots(Slots{{3, 1}}));
  fresh.SetShape(RowShape(1, Slots{{0.0f, 1}}));
  EXPECT_TRUE(fresh.KeepsSlots(Slots{{0.0f, 1}}));
  EXPECT_TRUE(fresh.KeepsSlots(Slots{{0.0f, 1}, {5, 1}}));
  EXPECT_FALSE(fresh.KeepsSlots(Slots{{-0.0f, 1}}));
  EXPECT_FALSE(fresh.KeepsSlots(Slots{{1.0f, 1}, {5, 1}}));
}

}  // namespace
}  // namespace ev

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
  FreshRows fresh(RowShape(2), Floats{1, 2, 3, 4});
  EXPECT_EQ(fresh.floats(), 2);
  Floats row(2);
  fresh.Fill(1, row.data());
  EXPECT_EQ(row, (Floats{3, 4}));
  fresh.SetShape(RowShape(2, Slots{{0.5f, 2}, {9, 1}, {7, 2}}));
  EXPECT_EQ(fresh.floats(), 7);
  row.resize(7);
  fresh.Fill(0, row.data());
  EXPECT_EQ(row, (Floats{1, 2, 0.5f, 0.5f, 9, 7, 7}));
}

TEST(FreshRowsTest, NarrowValuesAreRoundedOnce) {
  FreshRows fresh(RowShape(3, {}, 1, FloatType::kBFloat16),
                  Floats{0, 0, 0, 1.001f, 2, 3});
  fresh.SetShape(fresh.shape().With(Slots{{0.5f, 3}}));
  EXPECT_EQ(fresh.floats(), 5);
  Floats row(5, -1.0f);
  fresh.Fill(1, row.data());
  const auto* const numbers = reinterpret_cast<const uint16_t*>(row.data());
  EXPECT_EQ(numbers[0], 0x3F80);  // 1
  EXPECT_EQ(numbers[1], 0x4000);
  EXPECT_EQ(numbers[2], 0x4040);
  EXPECT_EQ(numbers[3], 0);  // padding
  EXPECT_EQ(row[4], 0.5f);
}

TEST(FreshRowsTest, SlotsKeepTheirInitialValuesToTheBit) {
  FreshRows fresh(RowShape(1), Floats{0});
  EXPECT_TRUE(fresh.KeepsSlots(Slots{{3, 1}}));
  fresh.SetShape(RowShape(1, Slots{{0.0f, 1}}));
  EXPECT_TRUE(fresh.KeepsSlots(Slots{{0.0f, 1}}));
  EXPECT_TRUE(fresh.KeepsSlots(Slots{{0.0f, 1}, {5, 1}}));
  EXPECT_FALSE(fresh.KeepsSlots(Slots{{-0.0f, 1}}));
  EXPECT_FALSE(fresh.KeepsSlots(Slots{{1.0f, 1}, {5, 1}}));
}

}  // namespace
}  // namespace ev

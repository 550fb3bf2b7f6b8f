// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/tiered/fresh_rows.h"

#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

using Floats = std::vector<float>;

TEST(FreshRowsTest, ARowIsItsDefaultRowAndItsSlotsInitialValues) {
  FreshRows fresh(2, Floats{1, 2, 3, 4});
  EXPECT_EQ(fresh.floats(), 2);
  Floats row(2);
  fresh.Fill(1, row.data());
  EXPECT_EQ(row, (Floats{3, 4}));
  fresh.SetSlots(Floats{0.5f, 7});
  EXPECT_EQ(fresh.floats(), 6);
  EXPECT_EQ(fresh.num_slots(), 2);
  row.resize(6);
  fresh.Fill(0, row.data());
  EXPECT_EQ(row, (Floats{1, 2, 0.5f, 0.5f, 7, 7}));
  EXPECT_EQ(fresh.default_row(1)[0], 3.0f);
  EXPECT_EQ(fresh.initial_value(1), 7);
}

TEST(FreshRowsTest, SlotsKeepTheirInitialValuesToTheBit) {
  FreshRows fresh(1, Floats{0});
  EXPECT_TRUE(fresh.KeepsSlots(Floats{3}));
  fresh.SetSlots(Floats{0.0f});
  EXPECT_TRUE(fresh.KeepsSlots(Floats{0.0f}));
  EXPECT_TRUE(fresh.KeepsSlots(Floats{0.0f, 5}));
  EXPECT_FALSE(fresh.KeepsSlots(Floats{-0.0f}));
  EXPECT_FALSE(fresh.KeepsSlots(Floats{1.0f, 5}));
}

}  // namespace
}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/row_shape.h"

#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

using Slots = std::vector<SlotShape>;

TEST(RowShapeTest, ColumnsAreAdjacent) {
  const RowShape shape(3, Slots{{0.5f, 3}, {2.0f, 1}, {7.0f, 3}});
  EXPECT_EQ(shape.floats(), 10);
  const int64_t offsets[] = {0, 3, 6, 7}, widths[] = {3, 3, 1, 3};
  for (int column = 0; column < 4; ++column) {
    EXPECT_EQ(shape.offset(column), offsets[column]);
    EXPECT_EQ(shape.width(column), widths[column]);
  }
  EXPECT_EQ(RowShape(3).floats(), 3);
  EXPECT_EQ(FullSlots(3, std::vector<float>{1, 2})[1].width, 3);
}

TEST(RowShapeTest, AUnitPadsNarrowSlots) {
  const RowShape shape =
      RowShape(8, {}, /*unit=*/4).With(Slots{{2.0f, 1}, {7.0f, 8}});
  EXPECT_EQ(shape.offset(2), 12);
  EXPECT_EQ(shape.floats(), 20);
  std::vector<float> row(20, -1.0f);
  shape.FillSlots(1, row.data());
  EXPECT_EQ(row[11], -1.0f);
  EXPECT_EQ(row[12], 7.0f);
  shape.FillSlots(0, row.data());
  EXPECT_EQ(row[7], -1.0f);
  EXPECT_EQ(row[8], 2.0f);
  EXPECT_EQ(row[9], 0.0f);
  EXPECT_EQ(row[19], 7.0f);
}

}  // namespace
}  // namespace ev

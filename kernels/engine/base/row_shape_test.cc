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

TEST(RowShapeTest, AHashIsAtTheEnd) {
  const auto narrow = [](int64_t dim, const Slots& slots, int64_t unit = 4) {
    return RowShape(dim, slots, unit, FloatType::kBFloat16, /*has_hash=*/true);
  };
  // In the padding of the last slot, in padding of the value, or after it.
  EXPECT_EQ(narrow(64, Slots{{0.0f, 1}}).floats(), 36);
  EXPECT_EQ(narrow(4, {}).floats(), 4);
  EXPECT_EQ(narrow(16, {}).floats(), 12);
  EXPECT_EQ(narrow(3, {}, /*unit=*/1).floats(), 4);
  // Whole sectors, unless that takes a lot of padding.
  EXPECT_EQ(narrow(64, Slots{{0.0f, 64}}).floats(), 104);
  EXPECT_EQ(narrow(16, Slots{{0.0f, 16}}).floats(), 28);
  // A new slot may take no more room.
  const RowShape before = narrow(64, {});
  EXPECT_EQ(before.floats(), 36);
  const RowShape after = before.With(Slots{{0.0f, 1}});
  EXPECT_EQ(after.floats(), 36);
  EXPECT_TRUE(after.has_hash());
  std::vector<float> row(36);
  EXPECT_EQ(reinterpret_cast<float*>(HashOf(row.data(), 36)), row.data() + 34);
}

}  // namespace
}  // namespace ev

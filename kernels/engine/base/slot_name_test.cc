// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/slot_name.h"

#include "gtest/gtest.h"

namespace ev {
namespace {

TEST(SlotNameTest, TheEndOfTheNameIsTheWidth) {
  EXPECT_EQ(SlotWidth("RowWiseAdagrad@row", 16), 1);
  EXPECT_EQ(SlotWidth("RowWiseAdagrad_1@row", 16), 1);
  for (const char* name : {"Adagrad", "", "@row", "@row_1", "row", "a@rows"}) {
    EXPECT_EQ(SlotWidth(name, 16), 16) << name;
  }
}

}  // namespace
}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/occurrences.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace ev {
namespace {

TEST(OccurrencesTest, StaysBetweenNoneAndTheMost) {
  EXPECT_EQ(0, ToOccurrences(0));
  EXPECT_EQ(7, ToOccurrences(7));
  EXPECT_EQ(0, ToOccurrences(-1));
  EXPECT_EQ(0, ToOccurrences(INT64_MIN));
  EXPECT_EQ(INT32_MAX, ToOccurrences(INT32_MAX));
  EXPECT_EQ(INT32_MAX, ToOccurrences(int64_t{INT32_MAX} + 1));
  EXPECT_EQ(INT32_MAX, ToOccurrences(INT64_MAX));
}

TEST(OccurrencesTest, SumsSaturateToo) {
  int32_t count = 3;
  AddOccurrences(4, &count);
  EXPECT_EQ(7, count);
  AddOccurrences(-5, &count);
  EXPECT_EQ(7, count);
  AddOccurrences(INT32_MAX - 8, &count);
  EXPECT_EQ(INT32_MAX - 1, count);
  AddOccurrences(2, &count);
  EXPECT_EQ(INT32_MAX, count);
  AddOccurrences(INT64_MAX, &count);
  EXPECT_EQ(INT32_MAX, count);
}

}  // namespace
}  // namespace ev

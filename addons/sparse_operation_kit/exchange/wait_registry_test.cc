// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/wait_registry.h"

#include <gtest/gtest.h>

namespace sok {
namespace {

TEST(WaitRegistry, NamesTheOldestWait) {
  std::string what = "something";
  EXPECT_EQ(WaitRegistry::Global().Longest(&what), 0);
  EXPECT_EQ(what, "");
  Wait first;
  first.Begin("first");
  {
    Wait second;
    second.Begin("second");
    EXPECT_GT(WaitRegistry::Global().Longest(&what), 0);
    EXPECT_EQ(what, "first");
    first.End();
    first.End();
    EXPECT_GT(WaitRegistry::Global().Longest(&what), 0);
    EXPECT_EQ(what, "second");
  }
  EXPECT_EQ(WaitRegistry::Global().Longest(&what), 0);
}

TEST(WaitRegistry, ASecondBeginEndsTheFirst) {
  std::string what;
  Wait wait;
  wait.Begin("a");
  wait.Begin("b");
  WaitRegistry::Global().Longest(&what);
  EXPECT_EQ(what, "b");
  wait.End();
  EXPECT_EQ(WaitRegistry::Global().Longest(&what), 0);
}

}  // namespace
}  // namespace sok

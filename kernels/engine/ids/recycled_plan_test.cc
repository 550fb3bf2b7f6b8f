// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/recycled_plan.h"

#include <memory>

#include "gtest/gtest.h"

namespace ev {
namespace {

struct TestPlan {
  ~TestPlan() { ++num_destroyed; }
  size_t bytes() const { return held_bytes; }
  void GiveBack() { ++num_given_back; }
  size_t held_bytes = 0;
  static int num_destroyed, num_given_back;
};
int TestPlan::num_destroyed = 0;
int TestPlan::num_given_back = 0;

TEST(RecycledPlanTest, ReusesAPlanUnlessItIsHuge) {
  std::shared_ptr<TestPlan> plan = RecycledPlan<TestPlan>();
  const std::shared_ptr<TestPlan> other = RecycledPlan<TestPlan>();
  EXPECT_NE(plan, other);
  TestPlan* const first = plan.get();
  first->held_bytes = 17;
  plan.reset();
  EXPECT_EQ(1, TestPlan::num_given_back);
  EXPECT_EQ(0, TestPlan::num_destroyed);
  plan = RecycledPlan<TestPlan>();
  EXPECT_EQ(first, plan.get());
  EXPECT_EQ(17u, plan->held_bytes);
  plan->held_bytes = size_t{2} << 30;
  plan.reset();
  EXPECT_EQ(2, TestPlan::num_given_back);
  EXPECT_EQ(1, TestPlan::num_destroyed);
}

}  // namespace
}  // namespace ev

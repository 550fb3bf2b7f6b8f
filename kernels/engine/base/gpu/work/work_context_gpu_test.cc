// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Limits the memory of contexts in flight.

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/gpu/work/context_under_test.h"

namespace ev {
namespace gpu {
namespace {

class WorkContextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status status = ContextUnderTest::MaxBytesInFlight(&most_);
    if (status.code() == StatusCode::kFailedPrecondition) {
      GTEST_SKIP() << status.message();
    }
    ASSERT_TRUE(status.ok()) << status.message();
  }

  // Creates idle contexts of these sizes, so that nothing is allocated or freed
  // while others are held: the driver would wait for those.
  static void Make(const std::vector<size_t>& sizes) {
    std::vector<ContextUnderTest> contexts(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      ASSERT_TRUE(contexts[i].Acquire(sizes[i]).ok());
    }
    for (ContextUnderTest& context : contexts) context.Release();
  }

  // Starts work on a context with memory for 'bytes'; it runs until the flag is
  // set.
  const void* Begin(size_t bytes, const std::atomic<bool>* flag) {
    ContextUnderTest context;
    EXPECT_TRUE(context.Acquire(bytes).ok());
    EXPECT_TRUE(context.HoldUntil(flag).ok());
    const void* const memory = context.memory();
    context.ReleaseBusy();
    return memory;
  }

  size_t most_ = 0;
};

TEST_F(WorkContextTest, AtTheLimitACallWaitsForTheOldestOne) {
  std::atomic<bool> first_ends{false}, second_ends{false};
  const size_t bytes = most_ * 2 / 5;  // a context takes a quarter more
  Make({1024, bytes, bytes});
  const void* const first = Begin(bytes, &first_ends);
  const void* const second = Begin(bytes, &second_ends);
  EXPECT_NE(first, second);
  // A small call does not wait.
  ContextUnderTest small;
  ASSERT_TRUE(small.Acquire(1024).ok());
  small.Release();
  ASSERT_FALSE(first_ends.load());

  std::thread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    first_ends = true;
  });
  ContextUnderTest third;
  ASSERT_TRUE(third.Acquire(bytes).ok());
  EXPECT_TRUE(first_ends.load());
  EXPECT_EQ(third.memory(), first);
  ends.join();
  second_ends = true;
  third.Release();
  ContextUnderTest::WaitForAll();
}

TEST_F(WorkContextTest, BelowTheLimitACallGetsItsOwnContext) {
  std::atomic<bool> ends{false};
  const size_t bytes = most_ / 8;
  Make({bytes, bytes});
  const void* const first = Begin(bytes, &ends);
  ContextUnderTest second;
  ASSERT_TRUE(second.Acquire(bytes).ok());  // must not wait
  EXPECT_NE(second.memory(), first);
  ends = true;
  second.Release();
  ContextUnderTest::WaitForAll();
}

}  // namespace
}  // namespace gpu
}  // namespace ev

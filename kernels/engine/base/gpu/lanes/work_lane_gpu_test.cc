// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Limits the memory of lanes in flight.

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/gpu/lanes/lane_under_test.h"

namespace ev {
namespace gpu {
namespace {

class WorkLaneTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status status = LaneUnderTest::MaxBytesInFlight(&most_);
    if (status.code() == StatusCode::kFailedPrecondition) {
      GTEST_SKIP() << status.message();
    }
    ASSERT_TRUE(status.ok()) << status.message();
  }

  // Creates idle lanes of these sizes, so that nothing is allocated or freed
  // while others are held: the driver would wait for those.
  static void Make(const std::vector<size_t>& sizes) {
    std::vector<LaneUnderTest> lanes(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      ASSERT_TRUE(lanes[i].Acquire(sizes[i]).ok());
    }
    for (LaneUnderTest& lane : lanes) lane.Release();
  }

  // Starts work on a lane with memory for 'bytes'; it runs until the flag is
  // set.
  const void* Begin(size_t bytes, const std::atomic<bool>* flag) {
    LaneUnderTest lane;
    EXPECT_TRUE(lane.Acquire(bytes).ok());
    EXPECT_TRUE(lane.HoldUntil(flag).ok());
    const void* const memory = lane.memory();
    lane.ReleaseBusy();
    return memory;
  }

  size_t most_ = 0;
};

TEST_F(WorkLaneTest, AtTheLimitACallWaitsForTheOldestOne) {
  std::atomic<bool> first_ends{false}, second_ends{false};
  const size_t bytes = most_ * 2 / 5;  // a lane takes a quarter more
  Make({1024, bytes, bytes});
  const void* const first = Begin(bytes, &first_ends);
  const void* const second = Begin(bytes, &second_ends);
  EXPECT_NE(first, second);
  // A small call does not wait.
  LaneUnderTest small;
  ASSERT_TRUE(small.Acquire(1024).ok());
  small.Release();
  ASSERT_FALSE(first_ends.load());

  std::thread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    first_ends = true;
  });
  LaneUnderTest third;
  ASSERT_TRUE(third.Acquire(bytes).ok());
  EXPECT_TRUE(first_ends.load());
  EXPECT_EQ(third.memory(), first);
  ends.join();
  second_ends = true;
  third.Release();
  LaneUnderTest::WaitForAll();
}

TEST_F(WorkLaneTest, BelowTheLimitACallGetsItsOwnLane) {
  std::atomic<bool> ends{false};
  const size_t bytes = most_ / 8;
  Make({bytes, bytes});
  const void* const first = Begin(bytes, &ends);
  LaneUnderTest second;
  ASSERT_TRUE(second.Acquire(bytes).ok());  // must not wait
  EXPECT_NE(second.memory(), first);
  ends = true;
  second.Release();
  LaneUnderTest::WaitForAll();
}

}  // namespace
}  // namespace gpu
}  // namespace ev

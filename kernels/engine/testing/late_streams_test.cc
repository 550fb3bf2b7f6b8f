// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/testing/late_streams.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace testing {
namespace {

class LateStreamsTest : public ::testing::Test {
 protected:
  LateStreamsTest() {
    cudaStreamCreateWithFlags(&first_, 0);
    cudaStreamCreateWithFlags(&second_, 0);
    cudaEventCreateWithFlags(&event_, 0);
  }
  ~LateStreamsTest() override {
    cudaEventDestroy(event_);
    cudaStreamDestroy(first_);
    cudaStreamDestroy(second_);
  }
  void Add(cudaStream_t stream, int number) {
    Enqueue(stream, [=] { done_.push_back(number); });
  }
  // Returns the order in which the work has run.
  std::vector<int> Run() {
    WaitForLateStreams();
    std::vector<int> done;
    done.swap(done_);
    return done;
  }

  cudaStream_t first_ = nullptr, second_ = nullptr;
  cudaEvent_t event_ = nullptr;
  std::vector<int> done_;
};

TEST_F(LateStreamsTest, RunsEveryOrderOfIndependentStreams) {
  std::set<std::vector<int>> orders;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SeedLateStreams(seed);
    Add(first_, 1);
    Add(first_, 2);
    Add(second_, 3);
    EXPECT_TRUE(done_.empty());
    orders.insert(Run());
  }
  EXPECT_EQ((std::set<std::vector<int>>{{1, 2, 3}, {1, 3, 2}, {3, 1, 2}}),
            orders);
}

TEST_F(LateStreamsTest, AStreamWaitsForTheRecordedWorkOnly) {
  std::set<std::vector<int>> orders;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SeedLateStreams(seed);
    Add(first_, 1);
    cudaEventRecord(event_, first_);
    cudaStreamWaitEvent(second_, event_, 0);
    cudaEventRecord(event_, first_);  // does not change that wait
    Add(second_, 2);
    Add(first_, 3);
    orders.insert(Run());
  }
  EXPECT_EQ((std::set<std::vector<int>>{{1, 2, 3}, {1, 3, 2}}), orders);
}

TEST_F(LateStreamsTest, TheHostWaitsForAnEvent) {
  EXPECT_EQ(cudaSuccess, cudaEventQuery(event_));  // never recorded
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SeedLateStreams(seed);
    Add(first_, 1);
    cudaEventRecord(event_, first_);
    if (cudaEventQuery(event_) == cudaSuccess) EXPECT_EQ(1u, done_.size());
    cudaEventSynchronize(event_);
    EXPECT_EQ(cudaSuccess, cudaEventQuery(event_));
    EXPECT_EQ(std::vector<int>{1}, Run());
  }
}

}  // namespace
}  // namespace testing
}  // namespace ev

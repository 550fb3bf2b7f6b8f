// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/testing/thread_pool.h"

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace testing {
namespace {

TEST(ThreadPoolTest, RunsEachTaskOnceAndReturnsWhenAllAreDone) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.num_threads(), threads);
    for (int64_t tasks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> ran(tasks);
      for (auto& r : ran) r = 0;
      pool.For(tasks, [&](int64_t i) { ++ran[i]; });
      for (auto& r : ran) ASSERT_EQ(r, 1);
    }
  }
}

TEST(ThreadPoolTest, ThrowsWhatItsFirstTaskThrewWhenAllAreDone) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::atomic<int> ran{0};
    std::string caught;
    try {
      pool.For(50, [&](int64_t i) {
        ++ran;
        if (i % 10 == 7) throw std::runtime_error(std::to_string(i));
      });
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    EXPECT_EQ(caught, "7");
    EXPECT_EQ(ran, 50);
    pool.For(3, [&](int64_t) { ++ran; });
    EXPECT_EQ(ran, 53);
  }
}

TEST(ThreadPoolTest, SeveralCallersTakeTurns) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int r = 0; r < 50; ++r) {
        pool.For(10, [&](int64_t i) { sum += i; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 50 * 45);
}

}  // namespace
}  // namespace testing
}  // namespace ev

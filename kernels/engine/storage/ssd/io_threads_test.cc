// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/ssd/io_threads.h"

#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

TEST(IoThreadsTest, EachTaskRunsOnce) {
  for (const int64_t count : {0, 1, 2, 31, 500}) {
    std::vector<std::atomic<int>> runs(count);
    RunBlocking(count, [&](int64_t i) { ++runs[i]; });
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(runs[i], 1) << i;
  }
}

TEST(IoThreadsTest, TasksWaitSideBySide) {
  // All of them must run at once, or none would end.
  std::atomic<int> waiting{0};
  RunBlocking(20, [&](int64_t) {
    ++waiting;
    for (int tries = 0; waiting < 20 && tries < 1000; ++tries) usleep(5000);
    EXPECT_EQ(waiting, 20);
  });
}

TEST(IoThreadsTest, TheFirstTaskThatThrowsIsReported) {
  for (const int64_t count : {1, 2, 100}) {
    std::atomic<int64_t> runs{0};
    try {
      RunBlocking(count, [&](int64_t i) {
        ++runs;
        throw std::runtime_error("task " + std::to_string(i));
      });
      ADD_FAILURE() << "nothing is thrown by " << count;
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "task 0");
    }
    EXPECT_EQ(runs, count);
  }
}

TEST(IoThreadsTest, SeveralCallers) {
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        RunBlocking(50, [&](int64_t i) { sum += i; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 20 * 1225);
}

}  // namespace
}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/tiered/background_thread.h"

#include <atomic>
#include <new>
#include <thread>

#include "gtest/gtest.h"

namespace ev {
namespace {

void WaitFor(const std::atomic<int>& count, int at_least) {
  while (count.load() < at_least) std::this_thread::yield();
}

TEST(BackgroundThreadTest, TheBodyRunsAfterEachWake) {
  std::atomic<int> runs{0};
  BackgroundThread thread([&] { ++runs; });
  thread.Wake();
  WaitFor(runs, 1);
  thread.Wake();
  WaitFor(runs, 2);
  EXPECT_FALSE(thread.stopping());
  thread.Stop();
  EXPECT_TRUE(thread.stopping());
  EXPECT_EQ(runs.load(), 2);
}

TEST(BackgroundThreadTest, ABodyWithoutMemoryIsCalledAgain) {
  std::atomic<int> runs{0};
  BackgroundThread thread([&] {
    if (++runs == 1) throw std::bad_alloc();
  });
  thread.Wake();
  WaitFor(runs, 1);
  thread.Wake();
  WaitFor(runs, 2);
}

TEST(BackgroundThreadTest, StopEndsABodyThatChecksStopping) {
  std::atomic<int> began{0};
  BackgroundThread* self = nullptr;
  BackgroundThread thread([&] {
    ++began;
    while (!self->stopping()) std::this_thread::yield();
  });
  self = &thread;
  thread.Wake();
  WaitFor(began, 1);
  thread.Stop();  // would never return
  EXPECT_EQ(began.load(), 1);
}

TEST(BackgroundThreadTest, WithoutAWakeNoThreadStarts) {
  BackgroundThread thread([] { FAIL(); });
  thread.Stop();
}

}  // namespace
}  // namespace ev

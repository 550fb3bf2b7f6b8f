// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/bridge/pool_parallel.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/tf/bridge/compat.h"
#include "tensorflow/core/lib/core/threadpool.h"

namespace embedding_variable {
namespace {

class PoolParallelTest : public ::testing::TestWithParam<int> {
 protected:
  PoolParallelTest() : pool_(tensorflow::Env::Default(), "test", GetParam()) {
    workers_.num_threads = GetParam();
    workers_.workers = &pool_;
  }

  tensorflow::thread::ThreadPool pool_;
  tensorflow::DeviceBase::CpuWorkerThreads workers_;
};

TEST_P(PoolParallelTest, ReportsThePoolsThreads) {
  EXPECT_EQ(GetParam(), PoolParallel(workers_).num_threads());
}

TEST_P(PoolParallelTest, RunsEachTaskOnce) {
  PoolParallel parallel(workers_);
  for (int64_t n : {0, 1, 2, 7, 1000}) {
    std::unique_ptr<std::atomic<int>[]> runs(new std::atomic<int>[n + 1]());
    parallel.For(n, [&](int64_t i) { ++runs[i]; });
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(1, runs[i]) << i << " of " << n;
    EXPECT_EQ(0, runs[n]);
  }
}

TEST_P(PoolParallelTest, ThrowsWhatItsFirstTaskThrewWhenAllAreDone) {
  PoolParallel parallel(workers_);
  std::atomic<int> ran{0};
  std::string caught;
  try {
    parallel.For(100, [&](int64_t i) {
      std::this_thread::yield();
      ++ran;
      if (i % 10 == 3) throw std::runtime_error(std::to_string(i));
    });
  } catch (const std::runtime_error& error) {
    caught = error.what();
  }
  EXPECT_EQ("3", caught);
  EXPECT_EQ(100, ran);
}

TEST_P(PoolParallelTest, UsesAtMostNumThreads) {
  PoolParallel parallel(workers_);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> running{0}, most{0};
  parallel.For(200, [&](int64_t) {
    const int now = ++running;
    int seen = most;
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    {
      std::lock_guard<std::mutex> lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    std::this_thread::yield();
    --running;
  });
  EXPECT_LE(most, GetParam());
  EXPECT_LE(threads.size(), GetParam());
}

TEST_P(PoolParallelTest, CallerWorksAloneWhenAllWorkersAreBusy) {
  std::mutex mutex;
  std::condition_variable changed;
  bool release = false;
  tensorflow::BlockingCounter busy(GetParam()), done(GetParam());
  for (int i = 0; i < GetParam(); ++i) {
    pool_.Schedule([&] {
      busy.DecrementCount();
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return release; });
      lock.unlock();
      done.DecrementCount();
    });
  }
  busy.Wait();
  PoolParallel parallel(workers_);
  int64_t sum = 0;
  const std::thread::id caller = std::this_thread::get_id();
  parallel.For(100, [&](int64_t i) {
    EXPECT_EQ(caller, std::this_thread::get_id());
    sum += i;
  });
  EXPECT_EQ(4950, sum);
  {
    std::lock_guard<std::mutex> lock(mutex);
    release = true;
  }
  changed.notify_all();
  done.Wait();
}

TEST_P(PoolParallelTest, WorksInsideEveryWorkerAtOnce) {
  // Waiting for helpers would deadlock: the callers are the workers.
  PoolParallel parallel(workers_);
  std::atomic<int64_t> sum{0};
  tensorflow::BlockingCounter done(2 * GetParam());
  for (int i = 0; i < 2 * GetParam(); ++i) {
    pool_.Schedule([&] {
      parallel.For(50, [&](int64_t k) {
        parallel.For(3, [&](int64_t j) { sum += k * j; });
      });
      done.DecrementCount();
    });
  }
  done.Wait();
  EXPECT_EQ(2 * GetParam() * 3 * 1225, sum);
}

TEST_P(PoolParallelTest, DoesLaterWhatTheCallerDoesNotWaitFor) {
  PoolParallel parallel(workers_);
  tensorflow::BlockingCounter caller_goes_on(1), done(1);
  std::atomic<int> times{0};
  // Would deadlock on the caller's thread.
  parallel.Later([&] {
    caller_goes_on.Wait();
    ++times;
    done.DecrementCount();
  });
  EXPECT_EQ(0, times);
  caller_goes_on.DecrementCount();
  done.Wait();
  EXPECT_EQ(1, times);
}

INSTANTIATE_TEST_SUITE_P(Threads, PoolParallelTest, ::testing::Values(1, 2, 8));

}  // namespace
}  // namespace embedding_variable

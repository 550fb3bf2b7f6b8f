// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu_step/wave_queue.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace gpu {
namespace {

TEST(WaveQueueTest, AWaveWaitsForEarlierWaves) {
  WaveQueue queue({2, 1, 1});
  std::vector<size_t> launched;
  const auto launch = [&](size_t w) {
    launched.push_back(w);
    return Status::OK();
  };
  for (size_t w : {1, 0}) EXPECT_TRUE(queue.Arrive(w, launch).ok());
  EXPECT_TRUE(launched.empty());
  EXPECT_TRUE(queue.Arrive(0, launch).ok());
  EXPECT_EQ((std::vector<size_t>{0, 1}), launched);
  EXPECT_TRUE(queue.Arrive(2, launch).ok());
  EXPECT_EQ((std::vector<size_t>{0, 1, 2}), launched);
}

TEST(WaveQueueTest, NothingIsLaunchedAfterAnError) {
  WaveQueue queue({1, 1, 1});
  int num_launched = 0;
  const auto launch = [&](size_t w) {
    ++num_launched;
    return w == 1 ? Internal("the second") : Status::OK();
  };
  EXPECT_TRUE(queue.Arrive(0, launch).ok());
  EXPECT_EQ("the second", queue.Arrive(1, launch).message());
  EXPECT_TRUE(queue.Arrive(2, launch).ok());
  EXPECT_EQ(2, num_launched);
}

// 'launched' needs no lock: launches do not overlap, and the main thread reads
// it after all threads have been joined.
TEST(WaveQueueTest, ThreadsLaunchEachWaveOnceAndInOrder) {
  constexpr int kThreads = 4, kWaves = 9, kParts = 3;
  for (int round = 0; round < 300; ++round) {
    WaveQueue queue(std::vector<int>(kWaves, kParts));
    std::vector<size_t> launched;
    const auto launch = [&](size_t w) {
      launched.push_back(w);
      return Status::OK();
    };
    std::atomic<int> next{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int part; (part = next.fetch_add(1)) < kWaves * kParts;) {
          EXPECT_TRUE(queue.Arrive(part / kParts, launch).ok());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<size_t> all;
    for (size_t w = 0; w < kWaves; ++w) all.push_back(w);
    ASSERT_EQ(all, launched);
  }
}

// A wave becomes complete just when the other thread has found no more waves.
TEST(WaveQueueTest, NoWaveIsLostBetweenTwoThreads) {
  constexpr int kRounds = 20000;
  std::atomic<int> arrived{0};
  std::vector<int> num_launched(kRounds, 0);
  std::vector<std::unique_ptr<WaveQueue>> queues;
  for (int round = 0; round < kRounds; ++round) {
    queues.emplace_back(new WaveQueue({1, 1}));
  }
  const auto arrive = [&](size_t w) {
    for (int round = 0; round < kRounds; ++round) {
      // Both threads start the round at about the same time.
      ++arrived;
      for (int spins = 0; arrived < 2 * (round + 1); ++spins) {
        if (spins > 1000) std::this_thread::yield();
      }
      EXPECT_TRUE(queues[round]
                      ->Arrive(w,
                               [&](size_t) {
                                 ++num_launched[round];
                                 return Status::OK();
                               })
                      .ok());
    }
  };
  std::thread second(arrive, 1);
  arrive(0);
  second.join();
  EXPECT_EQ(std::vector<int>(kRounds, 2), num_launched);
}

}  // namespace
}  // namespace gpu
}  // namespace ev

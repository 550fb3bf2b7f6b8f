// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/policy/counting_bloom_filter.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/pages.h"

namespace ev {
namespace {

std::unique_ptr<CountingBloomFilter> Make(int64_t max_keys, double probability,
                                          int bits) {
  std::unique_ptr<CountingBloomFilter> filter;
  const Status status =
      CountingBloomFilter::Make(max_keys, probability, bits, &filter);
  EXPECT_TRUE(status.ok()) << status.message();
  return filter;
}

TEST(CountingBloomFilterTest, SizesAreTheTextbooks) {
  // k = ceil(6.64), m = ceil(9.585 * 1000).
  const auto filter = Make(1000, 0.01, 16);
  EXPECT_EQ(filter->num_hashes(), 7);
  EXPECT_EQ(filter->num_counters(), 9586u);
  EXPECT_EQ(filter->bytes(), 2 * 9586);
  EXPECT_EQ(Make(1000, 0.01, 8)->bytes(), 9586);
  EXPECT_EQ(Make(1000, 0.01, 64)->bytes(), 8 * 9586);
  EXPECT_EQ(Make(1, 0.5, 32)->num_hashes(), 1);
}

TEST(CountingBloomFilterTest, NeverCountsTooLittleAndSeldomTooMuch) {
  const auto filter = Make(5000, 0.01, 32);
  std::unordered_map<int64_t, int64_t> model;
  std::mt19937_64 random(1);
  std::vector<int64_t> keys = {0, -1, 1, std::numeric_limits<int64_t>::min(),
                               std::numeric_limits<int64_t>::max()};
  while (keys.size() < 5000) keys.push_back(static_cast<int64_t>(random()));
  for (int i = 0; i < 20000; ++i) {
    const int64_t key = keys[random() % keys.size()];
    const int64_t times = 1 + static_cast<int64_t>(random() % 3);
    filter->Add(key, times);
    model[key] += times;
  }
  int64_t wrong = 0;
  for (const int64_t key : keys) {
    EXPECT_GE(filter->Count(key), model[key]);
    wrong += filter->Count(key) != model[key];
  }
  EXPECT_LT(wrong, 5000 / 100 * 2);
}

TEST(CountingBloomFilterTest, CountersSaturate) {
  for (const int bits : {8, 16, 32}) {
    const auto filter = Make(10, 0.1, bits);
    const int64_t largest = (int64_t{1} << bits) - 1;
    filter->Add(7, largest - 1);
    EXPECT_EQ(filter->Count(7), largest - 1);
    filter->Add(7, 5);
    EXPECT_EQ(filter->Count(7), largest);
    filter->Add(7, 1);
    EXPECT_EQ(filter->Count(7), largest);
  }
  const auto filter = Make(10, 0.1, 64);
  const int64_t largest = std::numeric_limits<int64_t>::max();
  filter->Add(7, largest);
  filter->Add(7, largest);
  filter->Add(7, largest);
  EXPECT_EQ(filter->Count(7), largest);
}

TEST(CountingBloomFilterTest, WhatWasAddedGoesAgain) {
  for (const int bits : {8, 16, 32, 64}) {
    const auto filter = Make(100, 0.01, bits);
    for (int64_t key = 0; key < 100; ++key) filter->Add(key, 1);
    std::vector<int64_t> before;
    for (int64_t key = 0; key < 200; ++key)
      before.push_back(filter->Count(key));
    for (int64_t key = 50; key < 150; ++key) filter->Add(key, 1 + key % 3);
    for (int64_t key = 50; key < 150; ++key) filter->Remove(key, 1 + key % 3);
    filter->Remove(3, 0);
    for (int64_t key = 0; key < 200; ++key) {
      ASSERT_EQ(filter->Count(key), before[key]) << bits << " bits";
    }
  }
  // A saturated counter does not show how much was added to it.
  const auto filter = Make(10, 0.1, 8);
  filter->Add(7, 300);
  filter->Remove(7, 290);
  EXPECT_EQ(filter->Count(7), 255);
}

TEST(CountingBloomFilterTest, OneCounterStillCountsAKeyOncePerOccurrence) {
  // In so small a filter, several hashes of a key select the same counter.
  const auto filter = Make(1, 0.001, 32);
  filter->Add(42, 3);
  EXPECT_EQ(filter->Count(42), 3);
  filter->Add(42, 0);
  filter->Add(42, -9);
  EXPECT_EQ(filter->Count(42), 3);
}

TEST(CountingBloomFilterTest, ClearForgets) {
  const auto filter = Make(100, 0.1, 8);
  for (int64_t key = 0; key < 300; ++key) filter->Add(key, 1);
  filter->Clear();
  for (int64_t key = 0; key < 300; ++key) EXPECT_EQ(filter->Count(key), 0);
}

TEST(CountingBloomFilterTest, ClearNeedsNoMemory) {
  const auto filter = Make(100, 0.1, 8);
  for (int64_t key = 0; key < 300; ++key) filter->Add(key, 1);
  SetAllocationHookForTesting([](size_t) { return false; });
  filter->Clear();
  SetAllocationHookForTesting(nullptr);
  for (int64_t key = 0; key < 300; ++key) EXPECT_EQ(filter->Count(key), 0);
}

TEST(CountingBloomFilterTest, ThreadsGiveTheSameCountsAsOne) {
  const auto together = Make(200, 0.05, 16);
  const auto alone = Make(200, 0.05, 16);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 2000; ++i) together->Add(i % 211, 1 + t);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 4; ++t) {
    for (int64_t i = 0; i < 2000; ++i) alone->Add(i % 211, 1 + t);
  }
  for (int64_t key = 0; key < 211; ++key) {
    EXPECT_EQ(together->Count(key), alone->Count(key));
  }
}

TEST(CountingBloomFilterTest, WrongOptionsAreErrors) {
  std::unique_ptr<CountingBloomFilter> filter;
  const auto code = [&](int64_t keys, double probability, int bits) {
    return CountingBloomFilter::Make(keys, probability, bits, &filter).code();
  };
  EXPECT_EQ(code(0, 0.1, 8), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(5, 0.0, 8), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(5, 1.0, 8), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(5, 0.1, 12), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(std::numeric_limits<int64_t>::max(), 0.01, 64),
            StatusCode::kResourceExhausted);
  SetAllocationHookForTesting([](size_t) { return false; });
  EXPECT_EQ(code(5, 0.1, 8), StatusCode::kResourceExhausted);
  SetAllocationHookForTesting(nullptr);
  EXPECT_EQ(filter, nullptr);
}

}  // namespace
}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/tiered/hold_numbers.h"

#include <sched.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

using Number = HoldNumbers::Number;

TEST(HoldNumbersTest, NothingIsHeldWithoutCalls) {
  HoldNumbers numbers;
  EXPECT_FALSE(numbers.MayBeHeld(HoldNumbers::kNever));
  const Number number = numbers.Enter();
  EXPECT_TRUE(numbers.MayBeHeld(number));
  EXPECT_FALSE(numbers.MayBeHeld(HoldNumbers::kNever));
  numbers.Leave(number);
  EXPECT_FALSE(numbers.MayBeHeld(number));
}

TEST(HoldNumbersTest, WhatAnEarlierCallWroteOverIsStillHeld) {
  HoldNumbers numbers(0xFFFFFFFFu);
  const Number first = numbers.Enter();
  const Number second = numbers.Enter();
  ASSERT_NE(first, second);
  // Both write their number to the same object, the first call later.
  const Number stamp = first;
  numbers.Leave(first);
  EXPECT_TRUE(numbers.MayBeHeld(stamp));
  // Other calls come and go.
  for (int i = 0; i < 100; ++i) {
    numbers.Leave(numbers.Enter());
    ASSERT_TRUE(numbers.MayBeHeld(stamp));
    ASSERT_TRUE(numbers.MayBeHeld(second));
  }
  numbers.Leave(second);
  EXPECT_FALSE(numbers.MayBeHeld(stamp));
  EXPECT_FALSE(numbers.MayBeHeld(second));
}

// Numbers near the end of their range, and halfway.
const Number kStarts[] = {3, 0x7FFFFFF0u, 0x80000002u, 0xFFFFFFF0u};

TEST(HoldNumbersTest, OldStampsAreFreeWhateverTheNumberIs) {
  constexpr Number kHalf = 0x80000000u;
  for (const Number start : kStarts) {
    HoldNumbers numbers(start);
    for (int i = 0; i < 20; ++i) {
      const Number number = numbers.Enter();
      EXPECT_TRUE(numbers.MayBeHeld(number));
      for (const Number age : {3u, 1000u, kHalf - 1, kHalf, kHalf + 1,
                               kHalf + 100000, 0xFFFE0000u}) {
        ASSERT_FALSE(numbers.MayBeHeld(number - age)) << number << " " << age;
      }
      numbers.Leave(number);
      EXPECT_FALSE(numbers.MayBeHeld(number));
    }
  }
}

TEST(HoldNumbersTest, ThingsAreCountedAcrossTheEnd) {
  HoldNumbers numbers(0xFFFFFFF0u);
  for (int i = 0; i < 40; ++i) {
    Number first, second;
    ASSERT_TRUE(numbers.TryEnter(60, 100, &first));
    ASSERT_FALSE(numbers.TryEnter(41, 100, &second));
    ASSERT_TRUE(numbers.TryEnter(40, 100, &second));
    numbers.Leave(first);
    numbers.Leave(second);
  }
}

// Calls that always overlap: objects of calls that ended some calls ago are
// released nevertheless.
TEST(HoldNumbersTest, CallsThatOverlapLetGo) {
  HoldNumbers numbers;
  const Number first = numbers.Enter();
  Number last = numbers.Enter();
  numbers.Leave(first);
  for (int i = 0; i < 4; ++i) {
    const Number next = numbers.Enter();
    numbers.Leave(last);
    last = next;
  }
  EXPECT_FALSE(numbers.MayBeHeld(first));
  EXPECT_TRUE(numbers.MayBeHeld(last));
  numbers.Leave(last);
}

TEST(HoldNumbersTest, ThingsAreCountedWhileTheyMayBeHeld) {
  HoldNumbers numbers;
  Number first, second, third;
  ASSERT_TRUE(numbers.TryEnter(60, 100, &first));
  EXPECT_FALSE(numbers.TryEnter(41, 100, &second));
  ASSERT_TRUE(numbers.TryEnter(40, 100, &second));
  numbers.Leave(first);
  EXPECT_FALSE(numbers.TryEnter(1, 100, &third));
  numbers.Leave(second);
  ASSERT_TRUE(numbers.TryEnter(100, 100, &third));
  EXPECT_FALSE(numbers.TryEnter(1, 100, &second));
  numbers.Leave(third);
  EXPECT_TRUE(numbers.TryEnter(100, 100, &third));
}

// Objects in cells are held and taken as the header describes. A call detects
// if an object that it holds is taken, and so does ThreadSanitizer.
TEST(HoldNumbersTest, AHeldThingIsNeverTaken) {
  constexpr int kThings = 8, kHolders = 3, kTakers = 2;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int kRounds = 3000;
#else
  constexpr int kRounds = 100000;
#endif
  struct Thing {
    std::atomic<int> is_moving{0};
    std::atomic<Number> stamp{HoldNumbers::kNever};
    // plain: written only by the thread that has taken the object
    int64_t taken = 0;
  } things[kThings];
  HoldNumbers numbers(0u - 1000);  // the numbers wrap during the test
  std::atomic<int> failures{0}, holders{kHolders};
  std::atomic<int64_t> taken{0};
  const auto hold = [&](int t) {
    std::mt19937 random(t);
    for (int round = 0; round < kRounds; ++round) {
      const Number number = numbers.Enter();
      std::vector<Thing*> mine;
      for (int i = 0; i < 3; ++i) {
        Thing* const thing = &things[random() % kThings];
        thing->stamp.store(number, std::memory_order_relaxed);
        mine.push_back(thing);
      }
      numbers.Publish();
      for (Thing*& thing : mine) {
        if (thing->is_moving.load(std::memory_order_seq_cst)) thing = nullptr;
      }
      for (Thing* thing : mine) {
        if (thing == nullptr) continue;
        const int64_t before = thing->taken;
        if (random() % 64 == 0) sched_yield();
        if (thing->taken != before) ++failures;
      }
      numbers.Leave(number);
    }
    --holders;
  };
  const auto take = [&](int t) {
    std::mt19937 random(100 + t);
    while (holders.load() > 0) {
      Thing* const thing = &things[random() % kThings];
      int free = 0;
      if (!thing->is_moving.compare_exchange_strong(
              free, 1, std::memory_order_seq_cst)) {
        continue;
      }
      numbers.Observe();
      if (!numbers.MayBeHeld(thing->stamp.load(std::memory_order_relaxed))) {
        ++thing->taken;
        ++taken;
      }
      thing->is_moving.store(0, std::memory_order_release);
      sched_yield();
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kHolders; ++t) threads.emplace_back(hold, t);
  for (int t = 0; t < kTakers; ++t) threads.emplace_back(take, t);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0);
  int64_t counted = 0;
  for (const Thing& thing : things) counted += thing.taken;
  EXPECT_EQ(counted, taken.load());
}

}  // namespace
}  // namespace ev

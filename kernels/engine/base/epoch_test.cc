// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/epoch.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

TEST(EpochTest, NothingExpiresWhileAReaderIsInside) {
  EpochDomain& domain = EpochDomain::Global();
  uint64_t stamp;
  {
    EpochDomain::Guard guard;
    stamp = domain.Stamp();
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(domain.Expired(stamp));
    EpochDomain::Guard nested;
    EXPECT_FALSE(domain.Expired(stamp));
  }
  EXPECT_TRUE(domain.Expired(stamp));
}

TEST(EpochTest, LaterReadersDoNotHoldWhatIsOutOfSight) {
  EpochDomain& domain = EpochDomain::Global();
  const uint64_t stamp = domain.Stamp();
  ASSERT_TRUE(domain.Expired(stamp));  // moves on by two
  EpochDomain::Guard guard;
  EXPECT_TRUE(domain.Expired(stamp));
  EXPECT_FALSE(domain.Expired(domain.Stamp()));
}

// Readers follow a pointer that a writer keeps replacing. The objects they
// reach must never have been freed (in this test: marked dead).
TEST(EpochTest, ReadersNeverSeeWhatWasFreed) {
  struct Object {
    std::atomic<bool> alive{true};
  };
  std::vector<std::unique_ptr<Object>> all;
  all.emplace_back(new Object);
  std::atomic<Object*> current{all.back().get()};
  std::atomic<bool> stop{false};
  std::atomic<int> failures{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&] {
      while (!stop) {
        EpochDomain::Guard guard;
        const Object* object = current.load(std::memory_order_acquire);
        for (int i = 0; i < 50; ++i) {
          failures += !object->alive.load(std::memory_order_relaxed);
        }
      }
    });
  }
  std::vector<std::pair<Object*, uint64_t>> retired;
  int64_t freed = 0;
  // At least this many rounds, and until something was freed. A reader that is
  // descheduled inside its guard rightly blocks all reclamation.
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (int i = 0;
       i < 5000 || (freed == 0 && std::chrono::steady_clock::now() < deadline);
       ++i) {
    all.emplace_back(new Object);
    Object* old = current.exchange(all.back().get(), std::memory_order_acq_rel);
    retired.emplace_back(old, EpochDomain::Global().Stamp());
    while (!retired.empty() &&
           EpochDomain::Global().Expired(retired.front().second)) {
      retired.front().first->alive = false;
      retired.erase(retired.begin());
      ++freed;
    }
    if (i >= 5000) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (i % 64 == 0) std::this_thread::yield();
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(failures, 0);
  EXPECT_GT(freed, 0);
}

}  // namespace
}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu/move_order.h"

#include <atomic>
#include <memory>
#include <thread>

#include "gtest/gtest.h"

namespace ev {
namespace gpu {
namespace {

TEST(MoveOrderTest, MovesNeverRunBesideAUseOrOtherMoves) {
  const auto order = std::make_shared<MoveOrder>();
  {
    const MoveOrder::Use first(order), second(order);
    EXPECT_FALSE(MoveOrder::Moving(order).is_closed());
  }
  {
    const MoveOrder::Moving moving(order);
    EXPECT_TRUE(moving.is_closed());
    EXPECT_FALSE(MoveOrder::Moving(order).is_closed());
  }
  EXPECT_TRUE(MoveOrder::Moving(order).is_closed());
}

TEST(MoveOrderTest, AUseWaitsForTheEndOfMoves) {
  const auto order = std::make_shared<MoveOrder>();
  for (int repetition = 0; repetition < 100; ++repetition) {
    std::atomic<bool> has_moved{false};
    std::unique_ptr<MoveOrder::Moving> moving(new MoveOrder::Moving(order));
    ASSERT_TRUE(moving->is_closed());
    std::thread other([&] {
      const MoveOrder::Use use(order);
      EXPECT_TRUE(has_moved);
    });
    std::this_thread::yield();
    has_moved = true;
    moving.reset();
    other.join();
  }
}

}  // namespace
}  // namespace gpu
}  // namespace ev

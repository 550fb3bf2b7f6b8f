// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The order of keys is that of tables and places, and all keys without late_bit
// come before those with it.

#include "kernels/engine/gpu_step/place_order.h"

#include <cstdint>
#include <random>

#include "gtest/gtest.h"

namespace ev {
namespace gpu {
namespace {

TEST(PlaceOrderTest, KeysAreInTheOrderOfTablesAndPlaces) {
  std::mt19937 random(3);
  for (const int num_tables : {1, 2, 26, 1000, 70000}) {
    for (const int64_t num_places :
         {int64_t{1}, int64_t{64}, int64_t{2000000}, int64_t{1} << 31}) {
      const PlaceOrder order = PlaceOrder::Of(num_tables, num_places);
      ASSERT_LE(order.bits, 32);
      for (int k = 0; k < 1000; ++k) {
        const uint32_t t = random() % num_tables, u = random() % num_tables;
        const uint32_t p = random() % num_places, q = random() % num_places;
        const uint32_t a = order.KeyOf(t, p), b = order.KeyOf(u, q);
        ASSERT_LT(a, order.late_bit());
        ASSERT_EQ(a >> order.window_bits, t);
        if (t < u || (t == u && p < q)) {
          ASSERT_LE(a, b);
        }
      }
    }
  }
}

TEST(PlaceOrderTest, AWindowIsOnePlaceIfKeysAreShortEnough) {
  EXPECT_EQ(PlaceOrder::Of(1, int64_t{1} << 23).window_log2, 0);
  EXPECT_EQ(PlaceOrder::Of(1, int64_t{1} << 23).bits, PlaceOrder::kMaxBits);
  EXPECT_EQ(PlaceOrder::Of(1, (int64_t{1} << 23) + 1).window_log2, 1);
  EXPECT_EQ(PlaceOrder::Of(26, 200000).window_log2, 0);
  EXPECT_EQ(PlaceOrder::Of(26, 2000000).window_log2, 3);
}

// Rows may be made while a step is enqueued.
TEST(PlaceOrderTest, LaterPlacesShareTheLastWindow) {
  const PlaceOrder order = PlaceOrder::Of(3, 100);
  EXPECT_EQ(order.KeyOf(2, 1 << 30), order.KeyOf(2, 127));
  EXPECT_LT(order.KeyOf(2, 1 << 30), order.late_bit());
  EXPECT_LT(order.KeyOf(1, 1 << 30), order.KeyOf(2, 0));
}

}  // namespace
}  // namespace gpu
}  // namespace ev

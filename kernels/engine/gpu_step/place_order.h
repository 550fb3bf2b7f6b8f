// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// PlaceOrder: the order in which kernels visit rows of which some are in host
// memory. Rows near each other share translations of addresses on their way
// over the link, so rows that are visited in the order of their addresses are
// read up to twice as fast.

#ifndef KERNELS_ENGINE_GPU_STEP_PLACE_ORDER_H_
#define KERNELS_ENGINE_GPU_STEP_PLACE_ORDER_H_

#include <algorithm>
#include <cstdint>

#include "kernels/engine/base/host_device.h"

namespace ev {
namespace gpu {

// Sort keys of rows: the table, then a window of adjacent places (StepTable).
// A window is one place if the keys of all tables fit into kMaxBits.
struct PlaceOrder {
  static constexpr int kMaxBits = 24;

  // num_places: the largest number of places of a table.
  static PlaceOrder Of(int num_tables, int64_t num_places) {
    const int table_bits = BitsOf(num_tables), place_bits = BitsOf(num_places);
    PlaceOrder order;
    order.window_bits =
        std::min(place_bits, std::max(4, kMaxBits - 1 - table_bits));
    order.window_log2 = place_bits - order.window_bits;
    order.bits = table_bits + order.window_bits + 1;
    return order;
  }

  // Places from num_places on share the last window.
  EV_HOST_DEVICE uint32_t KeyOf(uint32_t table, uint32_t place) const {
    const uint32_t window = place >> window_log2,
                   last = (1u << window_bits) - 1;
    return table << window_bits | (window < last ? window : last);
  }
  // Keys with this bit come after all keys without it.
  EV_HOST_DEVICE uint32_t late_bit() const { return 1u << (bits - 1); }

  int window_log2 = 0;  // log2 of the places of a window
  int window_bits = 0;  // bits of a window's number
  int bits = 0;         // bits of a key, including late_bit

 private:
  // Returns the bits of the numbers below n.
  static int BitsOf(int64_t n) {
    int bits = 0;
    while ((n - 1) >> bits > 0) ++bits;
    return bits;
  }
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_STEP_PLACE_ORDER_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// PlaceOrder, PlaceSort: the order in which kernels visit rows of which some
// are in host memory. Rows that are near each other share translations of
// addresses on their way over the link, so rows that are visited in the order
// of their addresses are read up to twice as fast.

#ifndef KERNELS_ENGINE_GPU_STEP_PLACE_ORDER_H_
#define KERNELS_ENGINE_GPU_STEP_PLACE_ORDER_H_

#include <cstddef>
#include <cstdint>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/host_device.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

struct StepPlan;

// Sort keys of rows: the table, then a window of adjacent places (StepTable).
// A window is one place if the keys of all tables fit into kMaxBits.
struct PlaceOrder {
  static constexpr int kMaxBits = 24;

  // num_places: the largest number of places of a table.
  static PlaceOrder Of(int num_tables, int64_t num_places);

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
};

// Sorts values by keys, in device memory.
class PlaceSort {
 public:
  // Returns the bytes of memory for n values.
  static Status Bytes(int64_t n, size_t* bytes);
  // memory: aligned to 256 bytes. Enqueues nothing.
  PlaceSort(char* memory, int64_t n);

  // [n] each: the input.
  uint32_t* keys() const { return keys_[0]; }
  uint32_t* values() const { return values_[0]; }
  // Sorts elements [first, first + count) by the lower 'bits' bits of their
  // keys; equal keys stay in order. Later work of the stream reads the results,
  // [count] each, which overwrite the input or other memory of the sort.
  Status Launch(int64_t first, int64_t count, int bits, StreamView stream,
                const uint32_t** sorted_keys, const uint32_t** sorted_values);

 private:
  uint32_t* keys_[2];
  uint32_t* values_[2];
  char* scratch_;
};

// Sets plan->small_order of a class: its keys of one occurrence, then the
// others, each in the order of their rows. sort: memory for the ids of all
// classes.
Status LaunchOrderSmall(int dim_class, const PlaceOrder& order, PlaceSort* sort,
                        StreamView stream, StepPlan* plan);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_STEP_PLACE_ORDER_H_

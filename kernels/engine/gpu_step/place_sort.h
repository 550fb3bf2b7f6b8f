// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// PlaceSort: sorts rows in the order of their places (place_order.h).

#ifndef KERNELS_ENGINE_GPU_STEP_PLACE_SORT_H_
#define KERNELS_ENGINE_GPU_STEP_PLACE_SORT_H_

#include <cstddef>
#include <cstdint>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/gpu_step/place_order.h"

namespace ev {
namespace gpu {

struct StepPlan;

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

#endif  // KERNELS_ENGINE_GPU_STEP_PLACE_SORT_H_

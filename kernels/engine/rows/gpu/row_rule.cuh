// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Device helper that applies a rule of optimizer/rule_list.h to one element of
// a row.

#ifndef KERNELS_ENGINE_ROWS_GPU_ROW_RULE_CUH_
#define KERNELS_ENGINE_ROWS_GPU_ROW_RULE_CUH_

#include <cstdint>
#include <utility>

#include "kernels/engine/base/span.h"

namespace ev {
namespace gpu {

constexpr int kMaxSlots = 3;

// Distances in floats from a row to each slot.
struct SlotOffsets {
  int64_t at[kMaxSlots];
};

inline SlotOffsets OffsetsOf(Span<const int64_t> offsets) {
  SlotOffsets slots = {};
  for (size_t s = 0; s < offsets.size() && s < kMaxSlots; ++s) {
    slots.at[s] = offsets[s];
  }
  return slots;
}

// Applies the rule to the value of column c.
template <typename Rule, size_t... kSlot>
__device__ __forceinline__ void ApplyToElement(const Rule& rule, float grad,
                                               float* value, float* row,
                                               int64_t c,
                                               const SlotOffsets& slots,
                                               std::index_sequence<kSlot...>) {
  rule(grad, value, (row + slots.at[kSlot] + c)...);
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_ROW_RULE_CUH_

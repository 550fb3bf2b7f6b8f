// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Limits on the size of a table.

#ifndef KERNELS_ENGINE_POLICY_CAPACITY_H_
#define KERNELS_ENGINE_POLICY_CAPACITY_H_

#include <cstdint>

#include "kernels/engine/policy/cache_strategy.h"

namespace ev {

// Limits on a table's size; 0 means no limit. If both are set, the tighter one
// applies.
struct CapacityOptions {
  int64_t max_rows = 0;
  int64_t max_bytes = 0;  // of rows, slots, meta and index
  CacheStrategy strategy = CacheStrategy::kLfu;

  bool bounded() const { return max_rows > 0 || max_bytes > 0; }
};

inline bool operator==(const CapacityOptions& a, const CapacityOptions& b) {
  return a.max_rows == b.max_rows && a.max_bytes == b.max_bytes &&
         a.strategy == b.strategy;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_POLICY_CAPACITY_H_

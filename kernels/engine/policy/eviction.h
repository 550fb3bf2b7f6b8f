// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Which rows go when a variable is saved or asked to evict: those that were not
// updated for long, and those that weigh little. A version is the global step
// of a row's last update, -1 when it never had one.

#ifndef KERNELS_ENGINE_POLICY_EVICTION_H_
#define KERNELS_ENGINE_POLICY_EVICTION_H_

#include <cstdint>

namespace ev {

// Nothing updated the row for more than steps_to_live steps. Any int64 is a
// step.
inline bool IsStale(int64_t version, int64_t step, int64_t steps_to_live) {
  return step > version &&
         static_cast<uint64_t>(step) - static_cast<uint64_t>(version) >
             static_cast<uint64_t>(steps_to_live);
}

// In this order wherever the row is, so that every memory evicts the same rows.
inline double SumOfSquares(const float* row, int64_t dim) {
  double squares = 0.0;
  for (int64_t c = 0; c < dim; ++c) {
    squares += static_cast<double>(row[c]) * row[c];
  }
  return squares;
}

// Half of the sum of a row's squares is below the threshold; not so for NaN.
inline bool IsWeak(double squares, float threshold) {
  return 0.5 * squares < threshold;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_POLICY_EVICTION_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rules for evicting rows when a variable is saved or its eviction is
// requested: rows that have not been updated for long, and rows with a small
// norm. A version is the global step of a row's last update, -1 if there was
// none.

#ifndef KERNELS_ENGINE_POLICY_EVICTION_H_
#define KERNELS_ENGINE_POLICY_EVICTION_H_

#include <cstdint>

namespace ev {

// Returns whether the row's last update is more than steps_to_live steps old.
// Any int64 is a valid step.
inline bool IsStale(int64_t version, int64_t step, int64_t steps_to_live) {
  return step > version &&
         static_cast<uint64_t>(step) - static_cast<uint64_t>(version) >
             static_cast<uint64_t>(steps_to_live);
}

// Every memory that stores rows adds in this order, so all evict the same rows.
inline double SumOfSquares(const float* row, int64_t dim) {
  double squares = 0.0;
  for (int64_t c = 0; c < dim; ++c) {
    squares += static_cast<double>(row[c]) * row[c];
  }
  return squares;
}

// Returns whether half of a row's sum of squares is below the threshold; false
// for NaN.
inline bool IsWeak(double squares, float threshold) {
  return 0.5 * squares < threshold;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_POLICY_EVICTION_H_

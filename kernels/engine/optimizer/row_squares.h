// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The sum of the squares of a row's gradient, in one order for the CPU and for
// every layout of GPU threads, so that the bits are the same. Missing elements
// count as zeros, which change no sum:
//
//   1  The squares of elements 4q to 4q + 3 are added as (0 + 1) + (2 + 3).
//   2  Of these quads, q, q + 32, q + 64, ... are added in this order, from
//      zero, which gives 32 sums.
//   3  Sum i + 16 is added to sum i, then sum i + 8, i + 4, i + 2 and i + 1.

#ifndef KERNELS_ENGINE_OPTIMIZER_ROW_SQUARES_H_
#define KERNELS_ENGINE_OPTIMIZER_ROW_SQUARES_H_

#include <cstdint>

#include "kernels/engine/base/host_device.h"

namespace ev {

constexpr int kSquareSums = 32;

// Step 1.
EV_HOST_DEVICE float SquaresOfQuad(float a, float b, float c, float d) {
  return (a * a + b * b) + (c * c + d * d);
}

// Returns the sum for grad[0, dim) times 'factor'.
inline float SumOfRowSquares(const float* grad, int64_t dim, float factor) {
  float sums[kSquareSums] = {};
  const int64_t whole = dim / 4;
  for (int64_t q = 0; q < whole; ++q) {
    const float* const g = grad + 4 * q;
    sums[q % kSquareSums] += SquaresOfQuad(g[0] * factor, g[1] * factor,
                                           g[2] * factor, g[3] * factor);
  }
  if (dim % 4 != 0) {
    float last[4] = {};
    for (int64_t j = 4 * whole; j < dim; ++j) last[j % 4] = grad[j] * factor;
    sums[whole % kSquareSums] +=
        SquaresOfQuad(last[0], last[1], last[2], last[3]);
  }
  for (int half = kSquareSums / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_ROW_SQUARES_H_

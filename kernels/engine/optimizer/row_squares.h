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

#include "kernels/engine/base/host_device.h"

namespace ev {

constexpr int kSquareSums = 32;

// Step 1.
EV_HOST_DEVICE float SquaresOfQuad(float a, float b, float c, float d) {
  return (a * a + b * b) + (c * c + d * d);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_ROW_SQUARES_H_

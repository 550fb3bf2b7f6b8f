// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Sums the squares of a row's gradient in the order of row_squares.h, by a
// group of lanes of a warp.

#ifndef KERNELS_ENGINE_OPTIMIZER_ROW_SQUARES_CUH_
#define KERNELS_ENGINE_OPTIMIZER_ROW_SQUARES_CUH_

#include "kernels/engine/optimizer/row_squares.h"

namespace ev {
namespace gpu {

// W elements per lane and G lanes per row. Round i of a row has its elements
// [i * G * W, (i + 1) * G * W); lane 'sub' of the group has W of them. All
// lanes of 'mask', whole groups, call the members together.
//
// REQUIRES: (W, G) is (1, 32), or W is 4 and the row has one round or G is 32.
template <int W, int G>
class GroupSquares {
 public:
  static_assert(W == 4 || (W == 1 && G == kSquareSums), "");

  __device__ __forceinline__ explicit GroupSquares(unsigned mask)
      : mask_(mask) {}

  // Adds the lane's elements of the next round; zeros beyond the row.
  __device__ __forceinline__ void Add(const float* g) {
    if constexpr (W == 4) {
      sums_[0] += SquaresOfQuad(g[0], g[1], g[2], g[3]);
    } else {
      float squares = g[0] * g[0];
      squares += __shfl_xor_sync(mask_, squares, 1);
      squares += __shfl_xor_sync(mask_, squares, 2);
      // Sum 8 * (round % 4) + sub / 4. Selected without an index, so that the
      // sums stay in registers.
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (k == round_) sums_[k] += squares;
      }
      round_ = (round_ + 1) % 4;
    }
  }

  // Returns the sum, in all lanes of the group.
  __device__ __forceinline__ float Sum() const {
    float sum = sums_[0];
    if constexpr (W == 4) {
#pragma unroll
      for (int half = G / 2; half > 0; half /= 2) {
        sum += __shfl_xor_sync(mask_, sum, half);
      }
    } else {
      sum = (sums_[0] + sums_[2]) + (sums_[1] + sums_[3]);
#pragma unroll
      for (int lanes = 16; lanes >= 4; lanes /= 2) {
        sum += __shfl_xor_sync(mask_, sum, lanes);
      }
    }
    return sum;
  }

 private:
  const unsigned mask_;
  int round_ = 0;
  float sums_[W == 4 ? 1 : 4] = {};
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_ROW_SQUARES_CUH_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A warp computes the gradients of 32 vectors of a sample: the symmetric matrix
// of slopes, with zeros on its diagonal, times the vectors, 64 numbers of them
// at a time. A thread loads eight numbers of two vectors that are adjacent in
// the product's depth. Number k of the eight belongs to column 'group' of
// product k, so that the thread's results are 16 adjacent numbers of a
// gradient.

#include <cstdint>

#include "kernels/engine/interaction/gpu/narrow_batch.cuh"

namespace ev {
namespace gpu {
namespace {

// Numbers of a gradient that a warp computes at once.
constexpr int kColumns = 64;
constexpr int kTiles = kBlockSide / 16;

struct NarrowGrads {
  unsigned short* at[kMostVectors];
};

// For kTiles of the depth, and kTiles of 16 gradients.
using Slopes = unsigned[kTiles][kTiles][4];

__device__ __forceinline__ unsigned Slope(const unsigned short* slopes, int n,
                                          int i, int j) {
  if (i >= n || j >= n || i == j) return 0;
  return __ldg(slopes + PairsBefore(max(i, j)) + min(i, j));
}

// Loads the slopes of vectors i and up with vectors j and up.
__device__ __forceinline__ void LoadSlopes(const unsigned short* slopes, int n,
                                           int i, int j, Slopes* to) {
  const Lane lane = ThisLane();
#pragma unroll
  for (int k = 0; k < kTiles; ++k) {
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int row = i + 16 * m + lane.group + r % 2 * 8;
        const int column = j + 16 * k + 2 * lane.place + r / 2 * 8;
        (*to)[k][m][r] = Slope(slopes, n, row, column) |
                         Slope(slopes, n, row, column + 1) << 16;
      }
    }
  }
}

// Number k of both.
__device__ __forceinline__ unsigned Pair(const uint4 (&rows)[2], int k) {
  return __byte_perm(Word(rows[0], k / 2), Word(rows[1], k / 2),
                     k % 2 == 0 ? 0x5410 : 0x7632);
}

template <bool kFast>
__device__ __forceinline__ void StoreEight(const NarrowBatch& in,
                                           const uint4& eight, int c,
                                           unsigned short* row) {
  if (c >= in.dim) return;
  if (kFast || in.by_eights) {
    *reinterpret_cast<uint4*>(row + c) = eight;
  } else {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      if (c + k < in.dim) {
        row[c + k] =
            static_cast<unsigned short>(Word(eight, k / 2) >> (k % 2 * 16));
      }
    }
  }
}

template <FloatType kType, bool kFast>
__global__ void __launch_bounds__(kWarpsOfBlock * 32, kFast ? 3 : 2)
    NarrowGradientKernel(const __grid_constant__ NarrowBatch in, int64_t sides,
                         const unsigned short* slopes,
                         const __grid_constant__ NarrowGrads grads) {
  const Lane lane = ThisLane();
  const int n = in.num_vectors;
  for (int64_t item = ThisWarp(); item < in.num_samples * sides;
       item += NumWarps()) {
    const int64_t sample = item / sides;
    const int i = static_cast<int>(item - sample * sides) * kBlockSide;
    const unsigned short* const of_sample = slopes + sample * PairsBefore(n);
    Slopes a;
    if (kFast) LoadSlopes(of_sample, n, 0, 0, &a);
    for (int begin = 0; begin < in.dim; begin += kColumns) {
      float sums[kTiles][8][4] = {};
      for (int j = 0; j < (kFast ? 1 : n); j += kBlockSide) {
        if (!kFast) LoadSlopes(of_sample, n, i, j, &a);
        uint4 x[kTiles][2][2];
#pragma unroll
        for (int k = 0; k < kTiles * 4; ++k) {
          const int vector = j + k / 2 * 8 + 2 * lane.place + k % 2;
          x[k / 4][k / 2 % 2][k % 2] = LoadEight<kFast>(
              in, RowOf(in, vector, sample), begin + 8 * lane.group);
        }
#pragma unroll
        for (int k = 0; k < kTiles; ++k) {
#pragma unroll
          for (int q = 0; q < 8; ++q) {
            const unsigned b0 = Pair(x[k][0], q), b1 = Pair(x[k][1], q);
#pragma unroll
            for (int m = 0; m < kTiles; ++m) {
              MultiplyAdd<kType>(a[k][m][0], a[k][m][1], a[k][m][2], a[k][m][3],
                                 b0, b1, sums[m][q]);
            }
          }
        }
      }
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int vector = i + 16 * m + lane.group + e / 2 * 8;
          if (vector >= n) continue;
          uint4 eight;
          eight.x = RoundedPair<kType>(sums[m][0][e], sums[m][1][e]);
          eight.y = RoundedPair<kType>(sums[m][2][e], sums[m][3][e]);
          eight.z = RoundedPair<kType>(sums[m][4][e], sums[m][5][e]);
          eight.w = RoundedPair<kType>(sums[m][6][e], sums[m][7][e]);
          StoreEight<kFast>(in, eight, begin + 16 * lane.place + e % 2 * 8,
                            grads.at[vector] + sample * in.dim);
        }
      }
    }
  }
}

template <FloatType kType, bool kFast>
Status Launch(const NarrowBatch& in, ConstFloats slopes,
              const NarrowGrads& grads, StreamView stream) {
  static_assert(sizeof(NarrowBatch) + sizeof(NarrowGrads) <= 4000,
                "kernels take 4 KB of parameters");
  const int64_t sides = SidesOf(in);
  NarrowGradientKernel<kType, kFast><<<BlocksFor(in.num_samples * sides),
                                       kWarpsOfBlock * 32, 0, stream.get()>>>(
      in, sides, reinterpret_cast<const unsigned short*>(slopes.data()), grads);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("NarrowGradientKernel");
  return Status::OK();
}

template <FloatType kType>
Status LaunchOfType(const NarrowBatch& in, ConstFloats slopes,
                    const NarrowGrads& grads, StreamView stream) {
  return IsFast(in) ? Launch<kType, true>(in, slopes, grads, stream)
                    : Launch<kType, false>(in, slopes, grads, stream);
}

}  // namespace

Status LaunchNarrowGradient(const VectorBatch& batch, ConstFloats slopes,
                            Span<const MutableFloats> grads,
                            StreamView stream) {
  NarrowBatch in = MakeNarrowBatch(batch);
  NarrowGrads to = {};
  for (int v = 0; v < in.num_vectors; ++v) {
    to.at[v] = reinterpret_cast<unsigned short*>(grads[v].data());
    in.by_eights = in.by_eights &&
                   CanReadEights(ConstFloats(grads[v].data(), grads[v].type()));
  }
  return batch.type() == FloatType::kFloat16
             ? LaunchOfType<FloatType::kFloat16>(in, slopes, to, stream)
             : LaunchOfType<FloatType::kBFloat16>(in, slopes, to, stream);
}

}  // namespace gpu
}  // namespace ev

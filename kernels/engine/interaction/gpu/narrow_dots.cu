// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A warp computes 32 by 32 pairs of a sample. In a product's operands, a
// thread's adjacent numbers are those that it loads at once: 32 of the depth
// are two products deep. A vector's numbers are the same whether it is the
// first or the second of a pair, so up to 32 vectors are loaded once.

#include <cstdint>

#include "kernels/engine/interaction/gpu/narrow_batch.cuh"

namespace ev {
namespace gpu {
namespace {

// Numbers of a vector that four threads load at once.
constexpr int kDepth = 32;
// Groups of eight vectors in a block.
constexpr int kGroups = kBlockSide / 8;
// Words between rows of results in shared memory: no two threads that store at
// once use the same bank.
constexpr int kRowWords = 20;

using Rows = uint4[kGroups];
// For 16 first and 8 second vectors of pairs each.
using Sums = float[kBlockSide / 16][kGroups][4];

// kFast: 'tall' is 'wide', and pairs above the diagonal are left out.
template <FloatType kType, bool kFast>
__device__ __forceinline__ void AddProducts(const Rows& tall, const Rows& wide,
                                            Sums* sums) {
#pragma unroll
  for (int half = 0; half < 4; half += 2) {
#pragma unroll
    for (int m = 0; m < kBlockSide / 16; ++m) {
#pragma unroll
      for (int q = 0; q < kGroups; ++q) {
        if (kFast && q > 2 * m + 1) continue;
        MultiplyAdd<kType>(Word(tall[2 * m], half), Word(tall[2 * m + 1], half),
                           Word(tall[2 * m], half + 1),
                           Word(tall[2 * m + 1], half + 1), Word(wide[q], half),
                           Word(wide[q], half + 1), (*sums)[m][q]);
      }
    }
  }
}

template <FloatType kType, bool kFast>
__global__ void __launch_bounds__(kWarpsOfBlock * 32, kFast ? 3 : 2)
    NarrowDotsKernel(const __grid_constant__ NarrowBatch in, int64_t sides,
                     unsigned short* dots) {
  __shared__ unsigned made_by_warps[kWarpsOfBlock][kBlockSide][kRowWords];
  auto& made = made_by_warps[threadIdx.x / 32];
  const Lane lane = ThisLane();
  const int n = in.num_vectors, pairs = PairsBefore(n);
  // Blocks (0, 0), (1, 0), (1, 1), (2, 0), ...
  const int blocks = PairsBefore(static_cast<int>(sides) + 1);
  for (int64_t item = ThisWarp(); item < in.num_samples * blocks;
       item += NumWarps()) {
    const int64_t sample = item / blocks;
    const int block = static_cast<int>(item - sample * blocks);
    const int high = RowOfPair(block);  // one more than the block's row
    const int i = kFast ? 0 : (high - 1) * kBlockSide;
    const int j = kFast ? 0 : (block - PairsBefore(high)) * kBlockSide;
    const unsigned short *tall[kGroups], *wide[kGroups];
#pragma unroll
    for (int q = 0; q < kGroups; ++q) {
      tall[q] = RowOf(in, i + 8 * q + lane.group, sample);
      wide[q] = kFast ? nullptr : RowOf(in, j + 8 * q + lane.group, sample);
    }
    Sums sums = {};
    // Loads that are in flight together.
    constexpr int kSteps = kFast ? 4 : 2;
    for (int begin = 0; begin < in.dim; begin += kSteps * kDepth) {
      Rows a[kSteps], b[kSteps];
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const int c = begin + step * kDepth + 8 * lane.place;
#pragma unroll
        for (int q = 0; q < kGroups; ++q) {
          a[step][q] = LoadEight<kFast>(in, tall[q], c);
          if (!kFast) b[step][q] = LoadEight<kFast>(in, wide[q], c);
        }
      }
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        if (begin + step * kDepth >= in.dim) break;
        AddProducts<kType, kFast>(a[step], kFast ? a[step] : b[step], &sums);
      }
    }
#pragma unroll
    for (int m = 0; m < kBlockSide / 16; ++m) {
#pragma unroll
      for (int q = 0; q < kGroups; ++q) {
        const float(&sum)[4] = sums[m][q];
        const int row = 16 * m + lane.group, word = 4 * q + lane.place;
        made[row][word] = RoundedPair<kType>(sum[0], sum[1]);
        made[row + 8][word] = RoundedPair<kType>(sum[2], sum[3]);
      }
    }
    __syncwarp();
    // The dots of a row are adjacent.
    unsigned short* const to = dots + sample * pairs;
    const int thread = threadIdx.x % 32, column = j + thread;
#pragma unroll 4
    for (int row = i; row < min(n, i + kBlockSide); ++row) {
      const unsigned short* const from =
          reinterpret_cast<const unsigned short*>(made[row - i]);
      if (column < row) to[PairsBefore(row) + column] = from[thread];
    }
    __syncwarp();  // the results are no longer in use
  }
}

template <FloatType kType, bool kFast>
Status Launch(const NarrowBatch& in, MutableFloats dots, StreamView stream) {
  const int64_t sides = SidesOf(in);
  NarrowDotsKernel<kType, kFast>
      <<<BlocksFor(in.num_samples * NumPairs(sides + 1)), kWarpsOfBlock * 32, 0,
         stream.get()>>>(in, sides,
                         reinterpret_cast<unsigned short*>(dots.data()));
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("NarrowDotsKernel");
  return Status::OK();
}

template <FloatType kType>
Status LaunchOfType(const NarrowBatch& in, MutableFloats dots,
                    StreamView stream) {
  return IsFast(in) ? Launch<kType, true>(in, dots, stream)
                    : Launch<kType, false>(in, dots, stream);
}

}  // namespace

Status LaunchNarrowDots(const VectorBatch& batch, MutableFloats dots,
                        StreamView stream) {
  const NarrowBatch in = MakeNarrowBatch(batch);
  return batch.type() == FloatType::kFloat16
             ? LaunchOfType<FloatType::kFloat16>(in, dots, stream)
             : LaunchOfType<FloatType::kBFloat16>(in, dots, stream);
}

}  // namespace gpu
}  // namespace ev

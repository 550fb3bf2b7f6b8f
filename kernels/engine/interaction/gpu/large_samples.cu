// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of a sample. A block computes 64 by 64 results, a thread four
// by four of them. 16 floats of depth at a time are in shared memory. Sums go
// over the depth in order.

#include <algorithm>
#include <cstdint>

#include "kernels/engine/base/float_math.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/interaction/gpu/large_samples.h"

namespace ev {
namespace gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kSide = 64;
constexpr int kDepth = 16;
constexpr int kTile = 4;  // per thread
// With more blocks than this, each handles several items.
constexpr int64_t kMostBlocks = 1 << 20;

constexpr int kPointersAtOnce = 256;
struct Pointers {
  const char* at[kPointersAtOnce];
};

__global__ void WritePointersKernel(const __grid_constant__ Pointers pointers,
                                    int count, const char** to) {
  const int k = threadIdx.x;
  if (k < count) to[k] = pointers.at[k];
}

template <typename Floats>
Status WritePointers(Span<const Floats> from, const char** to,
                     StreamView stream) {
  for (size_t begin = 0; begin < from.size(); begin += kPointersAtOnce) {
    Pointers pointers = {};
    const size_t count = std::min<size_t>(kPointersAtOnce, from.size() - begin);
    for (size_t k = 0; k < count; ++k) {
      pointers.at[k] = from[begin + k].data();
    }
    WritePointersKernel<<<1, kPointersAtOnce, 0, stream.get()>>>(
        pointers, static_cast<int>(count), to + begin);
    EV_CUDA_RETURN_IF_LAUNCH_FAILED("WritePointersKernel");
  }
  return Status::OK();
}

template <typename Number>
struct LargeBatch {
  const Number* const* vectors;  // in the device's memory
  int64_t num_samples, num_vectors, dim;
};

// kDepth by kSide floats. The padding keeps rows aligned to 16 bytes.
struct alignas(16) Panel {
  float at[kDepth][kSide + 4];
};

// sum[t][u] += sum over k of tall[k][4 y + t] * wide[k][4 x + u].
__device__ __forceinline__ void Multiply(const Panel& tall, const Panel& wide,
                                         float (&sum)[kTile][kTile]) {
  const int x = threadIdx.x % 16 * kTile, y = threadIdx.x / 16 * kTile;
#pragma unroll
  for (int k = 0; k < kDepth; ++k) {
    const float4 a = *reinterpret_cast<const float4*>(&tall.at[k][y]);
    const float4 b = *reinterpret_cast<const float4*>(&wide.at[k][x]);
    const float as[kTile] = {a.x, a.y, a.z, a.w};
    const float bs[kTile] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int t = 0; t < kTile; ++t) {
#pragma unroll
      for (int u = 0; u < kTile; ++u) {
        sum[t][u] = fmaf(as[t], bs[u], sum[t][u]);
      }
    }
  }
}

__device__ __forceinline__ int64_t PairsBefore(int64_t row) {
  return row * (row - 1) / 2;
}

// Sets panel[k][r] = float begin + k of vector first + r, or zero beyond the
// last.
template <typename Number>
__device__ __forceinline__ void LoadVectors(const LargeBatch<Number>& in,
                                            int64_t sample, int64_t first,
                                            int64_t begin, Panel* panel) {
  const int k = threadIdx.x % kDepth;
  for (int r = threadIdx.x / kDepth; r < kSide; r += kThreads / kDepth) {
    const bool is_inside = first + r < in.num_vectors && begin + k < in.dim;
    panel->at[k][r] =
        is_inside ? Widen(in.vectors[first + r][sample * in.dim + begin + k])
                  : 0.0f;
  }
}

template <typename Number>
__global__ void __launch_bounds__(kThreads)
    LargeDotsKernel(const __grid_constant__ LargeBatch<Number> in,
                    int64_t sides, Number* dots) {
  __shared__ Panel tall, wide;
  // Squares (0, 0), (1, 0), (1, 1), (2, 0), ...
  const int64_t squares = PairsBefore(sides + 1);
  const int64_t pairs = PairsBefore(in.num_vectors);
  for (int64_t item = blockIdx.x; item < in.num_samples * squares;
       item += gridDim.x) {
    const int64_t sample = item / squares;
    const int64_t square = item - sample * squares;
    int64_t row = 0;
    while (PairsBefore(row + 2) <= square) ++row;
    const int64_t i = row * kSide, j = (square - PairsBefore(row + 1)) * kSide;
    float sum[kTile][kTile] = {};
    for (int64_t begin = 0; begin < in.dim; begin += kDepth) {
      __syncthreads();  // the panels are no longer in use
      LoadVectors(in, sample, i, begin, &tall);
      LoadVectors(in, sample, j, begin, &wide);
      __syncthreads();
      Multiply(tall, wide, sum);
    }
#pragma unroll
    for (int t = 0; t < kTile; ++t) {
      const int64_t to = i + threadIdx.x / 16 * kTile + t;
#pragma unroll
      for (int u = 0; u < kTile; ++u) {
        const int64_t column = j + threadIdx.x % 16 * kTile + u;
        if (to < in.num_vectors && column < to) {
          Narrow(sum[t][u], dots + sample * pairs + PairsBefore(to) + column);
        }
      }
    }
  }
}

// Sets panel[k][r] = the slope of vectors first + r and begin + k, or zero if
// there is no such pair.
template <typename Number>
__device__ __forceinline__ void LoadSlopes(const Number* slopes, int64_t n,
                                           int64_t first, int64_t begin,
                                           Panel* panel) {
  const int k = threadIdx.x % kDepth;
  for (int r = threadIdx.x / kDepth; r < kSide; r += kThreads / kDepth) {
    const int64_t i = first + r, j = begin + k;
    const bool is_inside = i < n && j < n && i != j;
    const int64_t pair = i > j ? PairsBefore(i) + j : PairsBefore(j) + i;
    panel->at[k][r] = is_inside ? Widen(slopes[pair]) : 0.0f;
  }
}

// Sets panel[k][c] = float d + c of vector begin + k, or zero beyond the last.
template <typename Number>
__device__ __forceinline__ void LoadFloats(const LargeBatch<Number>& in,
                                           int64_t sample, int64_t begin,
                                           int64_t d, Panel* panel) {
  const int c = threadIdx.x % kSide;
  for (int k = threadIdx.x / kSide; k < kDepth; k += kThreads / kSide) {
    const bool is_inside = begin + k < in.num_vectors && d + c < in.dim;
    panel->at[k][c] =
        is_inside ? Widen(in.vectors[begin + k][sample * in.dim + d + c])
                  : 0.0f;
  }
}

template <typename Number>
__global__ void __launch_bounds__(kThreads)
    LargeGradientKernel(const __grid_constant__ LargeBatch<Number> in,
                        int64_t tall_of, int64_t wide_of, const Number* slopes,
                        Number* const* grads) {
  __shared__ Panel tall, wide;
  const int64_t pairs = PairsBefore(in.num_vectors);
  for (int64_t item = blockIdx.x; item < in.num_samples * tall_of * wide_of;
       item += gridDim.x) {
    const int64_t sample = item / (tall_of * wide_of);
    const int64_t square = item - sample * tall_of * wide_of;
    const int64_t i = square / wide_of * kSide, d = square % wide_of * kSide;
    float sum[kTile][kTile] = {};
    for (int64_t begin = 0; begin < in.num_vectors; begin += kDepth) {
      __syncthreads();  // the panels are no longer in use
      LoadSlopes(slopes + sample * pairs, in.num_vectors, i, begin, &tall);
      LoadFloats(in, sample, begin, d, &wide);
      __syncthreads();
      Multiply(tall, wide, sum);
    }
#pragma unroll
    for (int t = 0; t < kTile; ++t) {
      const int64_t vector = i + threadIdx.x / 16 * kTile + t;
      if (vector >= in.num_vectors) break;
      Number* const to = grads[vector] + sample * in.dim;
#pragma unroll
      for (int u = 0; u < kTile; ++u) {
        const int64_t c = d + threadIdx.x % 16 * kTile + u;
        if (c < in.dim) Narrow(sum[t][u], to + c);
      }
    }
  }
}

int64_t SidesOf(int64_t count) { return (count + kSide - 1) / kSide; }

unsigned Blocks(int64_t items) {
  return static_cast<unsigned>(std::min(items, kMostBlocks));
}

template <typename Number>
Status LaunchDots(const VectorBatch& batch, Number* dots, void* workspace,
                  StreamView stream) {
  EV_RETURN_IF_ERROR(WritePointers(
      batch.vectors, static_cast<const char**>(workspace), stream));
  const LargeBatch<Number> in = {static_cast<const Number* const*>(workspace),
                                 batch.num_samples, batch.num_vectors(),
                                 batch.dim};
  const int64_t sides = SidesOf(in.num_vectors);
  const int64_t items = in.num_samples * NumPairs(sides + 1);
  LargeDotsKernel<<<Blocks(items), kThreads, 0, stream.get()>>>(in, sides,
                                                                dots);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("LargeDotsKernel");
  return Status::OK();
}

template <typename Number>
Status LaunchGradient(const VectorBatch& batch, const Number* slopes,
                      Span<const MutableFloats> grads, void* workspace,
                      StreamView stream) {
  const char** const pointers = static_cast<const char**>(workspace);
  const int64_t n = batch.num_vectors();
  EV_RETURN_IF_ERROR(WritePointers(batch.vectors, pointers, stream));
  EV_RETURN_IF_ERROR(WritePointers(grads, pointers + n, stream));
  const LargeBatch<Number> in = {static_cast<const Number* const*>(workspace),
                                 batch.num_samples, n, batch.dim};
  const int64_t tall = SidesOf(in.num_vectors), wide = SidesOf(in.dim);
  LargeGradientKernel<<<Blocks(in.num_samples * tall * wide), kThreads, 0,
                        stream.get()>>>(
      in, tall, wide, slopes, static_cast<Number* const*>(workspace) + n);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("LargeGradientKernel");
  return Status::OK();
}

}  // namespace

Status LaunchLargeDots(const VectorBatch& batch, MutableFloats dots,
                       void* workspace, StreamView stream) {
  Status status;
  VisitFloats(dots, [&](auto* typed) {
    status = LaunchDots(batch, typed, workspace, stream);
  });
  return status;
}

Status LaunchLargeGradient(const VectorBatch& batch, ConstFloats slopes,
                           Span<const MutableFloats> grads, void* workspace,
                           StreamView stream) {
  Status status;
  VisitFloats(slopes, [&](const auto* typed) {
    status = LaunchGradient(batch, typed, grads, workspace, stream);
  });
  return status;
}

}  // namespace gpu
}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A block has some samples in shared memory. Beside each sample are its slopes,
// as a symmetric matrix with zeros on the diagonal. A thread computes four
// floats of the gradients of four vectors, going over the vectors in order.
//
// 65,536 samples of 27 vectors of 128 floats are 906 MB read and as much
// written, plus 92 MB of slopes: 0.57 ms at an H100's 3.35 TB/s. A warp reads
// 512 bytes of a vector from shared memory, and 16 bytes of the matrix for all
// its threads, for 16 products per thread. That is some 950 cycles per sample
// of this shape, or 0.28 ms, overlapped with the loads and stores of other
// blocks.

#include <cstdint>

#include "kernels/engine/interaction/gpu/sample_launch.cuh"

namespace ev {
namespace gpu {
namespace {

struct Grads {
  float* at[kMostVectors];
  bool by_fours;  // rows can be written 16 bytes at a time
};

__device__ __forceinline__ void AddTimes(float factor, float4 x, float4* sum) {
  sum->x = fmaf(factor, x.x, sum->x);
  sum->y = fmaf(factor, x.y, sum->y);
  sum->z = fmaf(factor, x.z, sum->z);
  sum->w = fmaf(factor, x.w, sum->w);
}

__device__ __forceinline__ void Store(float4 sum, int left, bool by_fours,
                                      float* to) {
  if (by_fours) {
    *reinterpret_cast<float4*>(to) = sum;
    return;
  }
  to[0] = sum.x;
  if (left > 1) to[1] = sum.y;
  if (left > 2) to[2] = sum.z;
  if (left > 3) to[3] = sum.w;
}

// Makes matrices [count, n, stride] with zeros on the diagonals and after the
// n-th element of each row.
__device__ __forceinline__ void MakeMatrices(const float* slopes, int count,
                                             int n, int stride,
                                             float* matrices) {
  for (int row = threadIdx.x; row < count * n; row += kThreads) {
    float* const to = matrices + row * stride;
    to[row % n] = 0.0f;
    for (int c = n; c < stride; ++c) to[c] = 0.0f;
  }
  const int pairs = PairsBefore(n);
  for (int k = threadIdx.x; k < count * pairs; k += kThreads) {
    const int sample = k / pairs, pair = k - sample * pairs;
    const int i = RowOfPair(pair), j = pair - PairsBefore(i);
    float* const to = matrices + sample * n * stride;
    const float slope = slopes[k];
    to[i * stride + j] = slope;
    to[j * stride + i] = slope;
  }
}

__global__ void __launch_bounds__(kThreads, 4)
    SmallGradientKernel(const __grid_constant__ SampleBatch in,
                        const float* slopes,
                        const __grid_constant__ Grads grads) {
  extern __shared__ float4 shared[];
  const int n = in.num_vectors;
  const int row_groups = (n + kTile - 1) / kTile, width = row_groups * kTile;
  float* const rows = reinterpret_cast<float*>(shared);
  float* const matrices = rows + in.samples_of_block * n * in.stride;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * in.samples_of_block;
  const int64_t left = in.num_samples - first;
  const int count =
      left < in.samples_of_block ? static_cast<int>(left) : in.samples_of_block;
  BeginLoad(in, first, count, rows);
  MakeMatrices(slopes + first * PairsBefore(n), count, n, width, matrices);
  EndLoad();

  // Consecutive threads write adjacent memory.
  const int fours = in.stride / 4;
  const int items = row_groups * count * fours;
  for (int item = threadIdx.x; item < items; item += kThreads) {
    const int rest = item / fours, c = (item - rest * fours) * 4;
    const int group = rest / count, sample = rest - group * count;
    const float* x = rows + sample * n * in.stride + c;
    const float* factors = matrices + sample * n * width + group * kTile;
    float4 sum[kTile] = {};
#pragma unroll 4
    for (int j = 0; j < n; ++j) {
      const float4 value = *reinterpret_cast<const float4*>(x);
      const float4 factor = *reinterpret_cast<const float4*>(factors);
      AddTimes(factor.x, value, &sum[0]);
      AddTimes(factor.y, value, &sum[1]);
      AddTimes(factor.z, value, &sum[2]);
      AddTimes(factor.w, value, &sum[3]);
      x += in.stride;
      factors += width;
    }
    const int64_t at = (first + sample) * in.dim + c;
#pragma unroll
    for (int t = 0; t < kTile; ++t) {
      const int i = group * kTile + t;
      if (i < n) Store(sum[t], in.dim - c, grads.by_fours, grads.at[i] + at);
    }
  }
}

}  // namespace

Status LaunchSmallGradient(const VectorBatch& batch, const float* slopes,
                           Span<const MutableFloats> grads, StreamView stream) {
  const BlocksOfSamples blocks = CutIntoBlocks(batch);
  const SampleBatch in = MakeSampleBatch(batch, blocks);
  Grads to = {};
  to.by_fours = in.dim % 4 == 0;
  for (int v = 0; v < in.num_vectors; ++v) {
    to.at[v] = grads[v].floats();
    to.by_fours = to.by_fours && IsAligned(to.at[v]);
  }
  static_assert(sizeof(SampleBatch) + sizeof(Grads) + sizeof(float*) <= 4000,
                "kernels take 4 KB of parameters");
  EV_RETURN_IF_ERROR(AllowShared(&SmallGradientKernel, blocks.bytes));
  SmallGradientKernel<<<blocks.num_blocks, kThreads, blocks.bytes,
                        stream.get()>>>(in, slopes, to);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("SmallGradientKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

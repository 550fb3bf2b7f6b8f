// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The order of a sum is its bits, so one addition follows the other, and a
// column's sum cannot be faster than the adder's latency, 4 cycles per
// occurrence. So that it is not much slower one warp of a block does nothing
// but add, a column per lane, from shared memory, and the others bring there
// what comes next.
//
// Nobody lists the keys: of those that begin among kManyOccurrences places in a
// row only the last can occur so often, and a block looks for it.

#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/embedding/gpu/long_sums.h"

namespace ev {
namespace gpu {
namespace {

constexpr int kSumLanes = 32;
constexpr int kSumThreads = 128;
constexpr int kSumLoaders = kSumThreads - kSumLanes;
// Columns of one block; a wider row takes several.
constexpr int kSumColumns = kSumLanes;
// Occurrences come in stages; while one is added the others are on their way.
constexpr uint32_t kSumStages = 4;
constexpr int kStageFloatsLog2 = 11;
constexpr int kStageRowsLog2 = 7;  // at most
constexpr int64_t kMaxBlocks = 1 << 16;

struct SumStages {
  alignas(16) float grads[kSumStages][1 << kStageFloatsLog2];
  alignas(16) float scales[kSumStages][1 << kStageRowsLog2];
  // Twice as many: they are read while later ones come.
  int32_t samples[2 * kSumStages][1 << kStageRowsLog2];
};

// Columns [first, first + columns) of occurrences [begin, end).
struct Sum {
  PooledGradients from;
  int64_t dim;
  int64_t first;
  int columns;  // 1 to kSumColumns
  int32_t begin, end;
  // Floats of a row in shared memory: the power of two that columns fit.
  int stride_log2;

  __device__ __forceinline__ int rows_log2() const {  // of a stage
    return min(kStageRowsLog2, kStageFloatsLog2 - stride_log2);
  }
  __device__ __forceinline__ int64_t at(uint32_t stage) const {
    return begin + (static_cast<int64_t>(stage) << rows_log2());
  }
  // Rows of a stage; none beyond the last.
  __device__ __forceinline__ int rows(uint32_t stage) const {
    const int64_t most = int64_t{1} << rows_log2();
    return static_cast<int>(max(int64_t{0}, min(end - at(stage), most)));
  }
};

// What one of the loading threads brings of a stage's samples, and of its
// gradients once the samples are there. Unit: float, or float4 where rows are
// aligned to it.
__device__ __forceinline__ void BringSamples(const Sum& sum, uint32_t stage,
                                             int loader, SumStages* stages) {
  const int rows = sum.rows(stage);
  const int32_t* const from = sum.from.samples + sum.at(stage);
  int32_t* const to = stages->samples[stage % (2 * kSumStages)];
  for (int i = loader; i < rows; i += kSumLoaders) {
    __pipeline_memcpy_async(to + i, from + i, sizeof(int32_t));
  }
}

template <typename Unit>
__device__ __forceinline__ void BringGradients(const Sum& sum, uint32_t stage,
                                               int loader, SumStages* stages) {
  constexpr int kFloats = sizeof(Unit) / sizeof(float);
  const int rows = sum.rows(stage);
  const int32_t* const samples = stages->samples[stage % (2 * kSumStages)];
  float* const to = stages->grads[stage % kSumStages];
  const float* const from = sum.from.grads + sum.first;
  const int units_log2 =
      kFloats == 1 ? sum.stride_log2 : max(0, sum.stride_log2 - 2);
  const int units = sum.columns / kFloats;
#pragma unroll 4
  for (int i = loader; i < rows << units_log2; i += kSumLoaders) {
    const int row = i >> units_log2;
    const int column = (i & ((1 << units_log2) - 1)) * kFloats;
    if (column >= units * kFloats) continue;
    __pipeline_memcpy_async(to + (row << sum.stride_log2) + column,
                            from + samples[row] * sum.dim + column,
                            sizeof(Unit));
  }
  float* const scales = stages->scales[stage % kSumStages];
  if (sum.from.weights != nullptr) {
    const float* const weights = sum.from.weights + sum.at(stage);
    for (int i = loader; i < rows; i += kSumLoaders) {
      __pipeline_memcpy_async(scales + i, weights + i, sizeof(float));
    }
  } else if (sum.from.factors != nullptr) {
    for (int i = loader; i < rows; i += kSumLoaders) {
      __pipeline_memcpy_async(scales + i, sum.from.factors + samples[i],
                              sizeof(float));
    }
  }
}

// sum + grads[0] + grads[stride] + ..., each times its scale if it has one: one
// lane's share of a stage. What is added next is read before.
template <bool kIsScaled>
__device__ __forceinline__ float AddStage(float sum, const float* grads,
                                          int stride, const float* scales,
                                          int rows) {
  constexpr int kAtOnce = 16;
  const auto at = [&](int row) {
    const float grad = grads[row * stride];
    return kIsScaled ? grad * scales[row] : grad;
  };
  int row = 0;
  if (rows >= kAtOnce) {
    float now[kAtOnce], next[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) now[k] = at(k);
#pragma unroll 2
    for (row = kAtOnce; row + kAtOnce <= rows; row += kAtOnce) {
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) next[k] = at(row + k);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) sum += now[k];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) now[k] = next[k];
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) sum += now[k];
  }
  for (; row < rows; ++row) sum += at(row);
  return sum;
}

// By all threads of a block of kSumThreads. The sum of column first + l is lane
// l's of the adding warp. REQUIRES that begin < end.
template <typename Unit>
__device__ float SumByBlock(const Sum& sum, int adding_warp,
                            SumStages* stages) {
  const int warp = threadIdx.x / kSumLanes, lane = threadIdx.x % kSumLanes;
  const bool adds = warp == adding_warp;
  const int loader = (warp - (warp > adding_warp ? 1 : 0)) * kSumLanes + lane;
  const uint32_t num_stages =
      ((static_cast<uint32_t>(sum.end - sum.begin) - 1) >> sum.rows_log2()) + 1;
  // Group g of copies: gradients of stage g, samples of stage g + kAhead.
  constexpr uint32_t kAhead = kSumStages - 1;
  if (!adds) {
    for (uint32_t s = 0; s < kAhead; ++s) BringSamples(sum, s, loader, stages);
    __pipeline_commit();
    __pipeline_wait_prior(0);
  }
  __syncthreads();
  if (!adds) {
    for (uint32_t s = 0; s < kAhead; ++s) {
      BringGradients<Unit>(sum, s, loader, stages);
      BringSamples(sum, s + kAhead, loader, stages);
      __pipeline_commit();
    }
  }
  const bool is_scaled =
      sum.from.weights != nullptr || sum.from.factors != nullptr;
  const int column = min(lane, sum.columns - 1);
  const int stride = 1 << sum.stride_log2;
  float total = -0.0f;  // which leaves every first addend as it is
  for (uint32_t s = 0; s < num_stages; ++s) {
    if (!adds) __pipeline_wait_prior(kAhead - 1);
    // Group s is there, and stage s - 1 has been added.
    __syncthreads();
    if (!adds) {
      BringGradients<Unit>(sum, s + kAhead, loader, stages);
      BringSamples(sum, s + 2 * kAhead, loader, stages);
      __pipeline_commit();
      continue;
    }
    const float* const grads = stages->grads[s % kSumStages] + column;
    const float* const scales = stages->scales[s % kSumStages];
    const int rows = sum.rows(s);
    total = is_scaled ? AddStage<true>(total, grads, stride, scales, rows)
                      : AddStage<false>(total, grads, stride, scales, rows);
  }
  return total;
}

// How many of ends [n], which do not descend, are below 'bound': by all threads
// of a block, each of which looks at the last of a stretch.
__device__ int64_t CountBelow(const int32_t* ends, int64_t n, int32_t bound) {
  int64_t begin = 0;
  while (n > 0) {
    const int64_t stretch = n / kSumThreads + 1;
    const int64_t at = begin + threadIdx.x * stretch + stretch - 1;
    const bool is_below = at < begin + n && ends[at] < bound;
    const int64_t below = __syncthreads_count(is_below) * stretch;
    n = min(stretch - 1, n - below);
    begin += below;
  }
  return begin;
}

// A block's work: one stretch of kManyOccurrences places and kSumColumns
// columns.
template <typename Unit>
__global__ void __launch_bounds__(kSumThreads)
    LongSumsKernel(PooledGradients gradients, int64_t num_keys, int64_t dim,
                   int64_t num_stretches, float* sums) {
  __shared__ SumStages stages;
  const int64_t cuts = (dim + kSumColumns - 1) / kSumColumns;
  // Blocks that share a processor do not add in the same quarter of it.
  const int adding_warp = (blockIdx.x >> 7) % (kSumThreads / kSumLanes);
  Sum sum;
  sum.from = gradients;
  sum.dim = dim;
  for (int64_t i = blockIdx.x; i < num_stretches * cuts; i += gridDim.x) {
    const int64_t stretch = i / cuts;
    const int64_t from = stretch * kManyOccurrences;
    const int64_t u =
        CountBelow(gradients.ends, num_keys,
                   static_cast<int32_t>(
                       min(from + kManyOccurrences, int64_t{0x7FFFFFFF})));
    if (u == num_keys) continue;
    sum.begin = u == 0 ? 0 : gradients.ends[u - 1];
    sum.end = gradients.ends[u];
    if (sum.begin < from || sum.end - sum.begin < kManyOccurrences) continue;
    sum.first = i % cuts * kSumColumns;
    sum.columns = static_cast<int>(min(int64_t{kSumColumns}, dim - sum.first));
    sum.stride_log2 = 0;
    while ((1 << sum.stride_log2) < sum.columns) ++sum.stride_log2;
    const float total = SumByBlock<Unit>(sum, adding_warp, &stages);
    const int lane = threadIdx.x % kSumLanes;
    if (threadIdx.x / kSumLanes == adding_warp && lane < sum.columns) {
      sums[stretch * dim + sum.first + lane] = total;
    }
    __syncthreads();  // the stages are used again
  }
}

}  // namespace

size_t LongSumBytes(int64_t num_ids, int64_t dim) {
  return num_ids / kManyOccurrences * dim * sizeof(float);
}

Status LaunchLongSums(const PooledGradients& gradients, int64_t num_keys,
                      int64_t num_ids, int64_t dim, float* sums,
                      StreamView stream) {
  // A key that begins in the last, shorter stretch does not occur often enough.
  const int64_t num_stretches = num_ids / kManyOccurrences;
  if (num_stretches == 0) return Status::OK();
  const int64_t cuts = (dim + kSumColumns - 1) / kSumColumns;
  const unsigned blocks =
      static_cast<unsigned>(std::min(kMaxBlocks, num_stretches * cuts));
  const bool is_aligned =
      dim % 4 == 0 &&
      reinterpret_cast<uintptr_t>(gradients.grads) % sizeof(float4) == 0;
  if (is_aligned) {
    LongSumsKernel<float4><<<blocks, kSumThreads, 0, stream.get()>>>(
        gradients, num_keys, dim, num_stretches, sums);
  } else {
    LongSumsKernel<float><<<blocks, kSumThreads, 0, stream.get()>>>(
        gradients, num_keys, dim, num_stretches, sums);
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("LongSumsKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

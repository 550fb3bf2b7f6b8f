// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A sum of very many gradients by a block of a GPU, in the order of the key's
// occurrences (pooling_gradient.h).
//
// The order of a sum is its bits, so one addition follows the other, and a
// column's sum cannot be faster than the adder's latency, 4 cycles per
// occurrence. So that it is not much slower one warp of a block does nothing
// but add, a column per lane, from shared memory, and the others bring there
// what comes next.

#ifndef KERNELS_ENGINE_COMBINE_ORDERED_SUM_CUH_
#define KERNELS_ENGINE_COMBINE_ORDERED_SUM_CUH_

#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace ev {
namespace gpu {

constexpr int kSumLanes = 32;
// The last warp adds. With as many loading threads a stage is one vector, or
// four floats, for each: what a thread does for a stage takes longer than the
// additions else.
constexpr int kSumLoaders = 256;
constexpr int kSumThreads = kSumLoaders + kSumLanes;
// Columns of one block; a wider row takes several.
constexpr int kSumColumns = kSumLanes;
// Occurrences come in stages; while one is added the others are on their way.
constexpr uint32_t kSumStages = 4;
constexpr int kStageFloatsLog2 = 11;
constexpr int kStageRowsLog2 = 7;  // at most
constexpr int kMinStrideLog2 = 2;  // a vector

struct SumStages {
  alignas(16) float grads[kSumStages][1 << kStageFloatsLog2];
  alignas(16) float scales[kSumStages][1 << kStageRowsLog2];
  // Twice as many: they are read while later ones come.
  int32_t samples[2 * kSumStages][1 << kStageRowsLog2];
};

// What is added: occurrence i's gradient is row samples[i] of grads, times
// weights[i] or factors[samples[i]], at most one of which there is. Device
// memory.
struct SumSource {
  const int32_t* samples = nullptr;
  const float* weights = nullptr;
  const float* factors = nullptr;
  const float* grads = nullptr;  // [B, dim]
};

// Columns [first, first + columns) of 'count' occurrences from 'begin' on.
struct Sum {
  SumSource from;
  int64_t dim;
  int64_t first;
  int columns;  // 1 to kSumColumns
  int32_t begin;
  uint32_t count;  // 1 to 2^31 - 1
  // Floats of a row in shared memory: a power of two that columns fit.
  int stride_log2;

  // Sets columns and stride_log2; REQUIRES dim and first.
  __device__ __forceinline__ void Fit() {
    columns = static_cast<int>(min(int64_t{kSumColumns}, dim - first));
    stride_log2 = kMinStrideLog2;
    while ((1 << stride_log2) < columns) ++stride_log2;
  }

  __device__ __forceinline__ int rows_log2() const {  // of a stage
    return min(kStageRowsLog2, kStageFloatsLog2 - stride_log2);
  }
  // Rows of a stage; none beyond the last.
  __device__ __forceinline__ int rows(uint32_t stage) const {
    const uint32_t at = stage << rows_log2();
    return at >= count ? 0
                       : static_cast<int>(min(count - at, 1u << rows_log2()));
  }
};

// What one thread brings of every stage. Unit: float, or float4 where rows are
// aligned to it.
template <typename Unit>
struct Loader {
  static constexpr int kFloats = sizeof(Unit) / sizeof(float);
  static constexpr int kUnits =
      (1 << kStageFloatsLog2) / (kSumLoaders * kFloats);

  const int thread;
  const int row, column;  // of the first unit; of none if there is no column
  const int rows_apart;
  const bool has_column;

  __device__ __forceinline__ Loader(const Sum& sum, int thread_in)
      : thread(thread_in),
        row(thread * kFloats >> sum.stride_log2),
        column(thread * kFloats & ((1 << sum.stride_log2) - 1)),
        rows_apart(kSumLoaders * kFloats >> sum.stride_log2),
        has_column(column < sum.columns) {}

  __device__ __forceinline__ void Samples(const Sum& sum, uint32_t stage,
                                          SumStages* stages) const {
    if (thread >= sum.rows(stage)) return;
    const int64_t at = static_cast<int64_t>(stage) << sum.rows_log2();
    __pipeline_memcpy_async(stages->samples[stage % (2 * kSumStages)] + thread,
                            sum.from.samples + sum.begin + at + thread,
                            sizeof(int32_t));
  }

  // REQUIRES that the stage's samples are there.
  __device__ __forceinline__ void Gradients(const Sum& sum, uint32_t stage,
                                            SumStages* stages) const {
    const int rows = sum.rows(stage);
    const int32_t* const samples = stages->samples[stage % (2 * kSumStages)];
    float* const to = stages->grads[stage % kSumStages] + thread * kFloats;
    const float* const from = sum.from.grads + sum.first + column;
#pragma unroll
    for (int k = 0; k < kUnits; ++k) {
      const int i = row + k * rows_apart;
      if (i < rows && has_column) {
        __pipeline_memcpy_async(to + k * (kSumLoaders * kFloats),
                                from + samples[i] * sum.dim, sizeof(Unit));
      }
    }
    if (thread >= rows) return;
    float* const scale = stages->scales[stage % kSumStages] + thread;
    if (sum.from.weights != nullptr) {
      const int64_t at = static_cast<int64_t>(stage) << sum.rows_log2();
      __pipeline_memcpy_async(scale, sum.from.weights + sum.begin + at + thread,
                              sizeof(float));
    } else if (sum.from.factors != nullptr) {
      __pipeline_memcpy_async(scale, sum.from.factors + samples[thread],
                              sizeof(float));
    }
  }
};
static_assert(1 << kStageRowsLog2 <= kSumLoaders, "a sample for each");

// sum + grads[0] + grads[stride] + ..., each times its scale if it has one: one
// lane's share of a stage. What is added next is read before. The stride is a
// constant, so that an address costs nothing.
template <bool kIsScaled, int kStrideLog2>
__device__ __forceinline__ float AddRows(float sum, const float* grads,
                                         const float* scales, int rows) {
  constexpr int kAtOnce = 16;
  const auto at = [&](int row) {
    const float grad = grads[row << kStrideLog2];
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

template <bool kIsScaled>
__device__ __forceinline__ float AddStage(float sum, const float* grads,
                                          int stride_log2, const float* scales,
                                          int rows) {
  switch (stride_log2) {
    case 5:
      return AddRows<kIsScaled, 5>(sum, grads, scales, rows);
    case 4:
      return AddRows<kIsScaled, 4>(sum, grads, scales, rows);
    case 3:
      return AddRows<kIsScaled, 3>(sum, grads, scales, rows);
    default:
      return AddRows<kIsScaled, kMinStrideLog2>(sum, grads, scales, rows);
  }
}

// By all threads of a block of kSumThreads. The sum of column first + l is lane
// l's of the last warp.
template <typename Unit>
__device__ float SumByBlock(const Sum& sum, SumStages* stages) {
  const bool adds = threadIdx.x >= kSumLoaders;
  const uint32_t num_stages = ((sum.count - 1) >> sum.rows_log2()) + 1;
  // Group g of copies: gradients of stage g, samples of stage g + kAhead.
  constexpr uint32_t kAhead = kSumStages - 1;
  const Loader<Unit> loader(sum, threadIdx.x);
  if (!adds) {
    for (uint32_t s = 0; s < kAhead; ++s) loader.Samples(sum, s, stages);
    __pipeline_commit();
    __pipeline_wait_prior(0);
  }
  __syncthreads();
  if (!adds) {
    for (uint32_t s = 0; s < kAhead; ++s) {
      loader.Gradients(sum, s, stages);
      loader.Samples(sum, s + kAhead, stages);
      __pipeline_commit();
    }
  }
  const bool is_scaled =
      sum.from.weights != nullptr || sum.from.factors != nullptr;
  const int column =
      min(static_cast<int>(threadIdx.x) % kSumLanes, sum.columns - 1);
  float total = -0.0f;  // which leaves every first addend as it is
  for (uint32_t s = 0; s < num_stages; ++s) {
    if (!adds) __pipeline_wait_prior(kAhead - 1);
    // Group s is there, and stage s - 1 has been added.
    __syncthreads();
    if (!adds) {
      loader.Gradients(sum, s + kAhead, stages);
      loader.Samples(sum, s + 2 * kAhead, stages);
      __pipeline_commit();
      continue;
    }
    const float* const grads = stages->grads[s % kSumStages] + column;
    const float* const scales = stages->scales[s % kSumStages];
    const int rows = sum.rows(s);
    total = is_scaled
                ? AddStage<true>(total, grads, sum.stride_log2, scales, rows)
                : AddStage<false>(total, grads, sum.stride_log2, scales, rows);
  }
  return total;
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_COMBINE_ORDERED_SUM_CUH_

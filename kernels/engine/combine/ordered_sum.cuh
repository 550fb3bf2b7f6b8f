// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Sums very many gradients of one key in one GPU block, in the order of the
// key's occurrences (pooling_gradient.h).
//
// The bits of a sum depend on the order of its additions, so one addition
// follows the other. A column's sum takes at least the adder's latency, 4
// cycles, per occurrence. To stay close to that, one warp of the block only
// adds, a column per lane, from shared memory; the other warps load the next
// gradients into shared memory.

#ifndef KERNELS_ENGINE_COMBINE_ORDERED_SUM_CUH_
#define KERNELS_ENGINE_COMBINE_ORDERED_SUM_CUH_

#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/engine/base/float_math.h"

namespace ev {
namespace gpu {

constexpr int kSumLanes = 32;
// Threads that load gradients; the last warp adds them. With this many, each
// loads eight floats per stage. With fewer, loading a stage takes longer than
// adding it.
constexpr int kSumLoaders = 256;
constexpr int kSumThreads = kSumLoaders + kSumLanes;
// Columns per block; a wider row takes several blocks.
constexpr int kSumColumns = kSumLanes;
// Occurrences are loaded in stages; while one is added, the next ones are in
// flight.
constexpr uint32_t kSumStages = 4;
constexpr int kStageFloatsLog2 = 11;
constexpr int kStageRowsLog2 = 7;  // at most
constexpr int kMinStrideLog2 = 2;  // a vector

struct SumStages {
  alignas(16) float grads[kSumStages][1 << kStageFloatsLog2];
  alignas(16) float scales[kSumStages][1 << kStageRowsLog2];
  // Twice as many stages: samples are read while those of later stages are
  // loaded.
  int32_t samples[2 * kSumStages][1 << kStageRowsLog2];
};

// Addends of a sum: the gradient of occurrence i is row samples[i] of grads,
// times factors[samples[i]] unless factors is null. Arrays are in device
// memory.
struct SumSource {
  const int32_t* samples = nullptr;
  const float* factors = nullptr;
  const float* grads = nullptr;  // [B, dim], of grad_type
  FloatType grad_type = FloatType::kFloat32;
};

// A sum over 'count' occurrences from 'begin' on, of columns [first, first +
// columns).
struct Sum {
  SumSource from;
  int64_t dim;
  int64_t first;
  int columns;  // 1 to kSumColumns
  int32_t begin;
  uint32_t count;  // 1 to 2^31 - 1
  // log2 of the floats between two rows in shared memory, enough for all
  // columns.
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
  // Rows of a stage; 0 beyond the last stage.
  __device__ __forceinline__ int rows(uint32_t stage) const {
    const uint32_t at = stage << rows_log2();
    return at >= count ? 0
                       : static_cast<int>(min(count - at, 1u << rows_log2()));
  }
};

// Loads one thread's part of every stage. Unit: float, or float4 if rows are
// aligned to it.
template <typename Unit>
struct Loader {
  static constexpr int kFloats = sizeof(Unit) / sizeof(float);
  static constexpr int kUnits =
      (1 << kStageFloatsLog2) / (kSumLoaders * kFloats);

  const int thread;
  const int row, column;  // of the first unit; not used if !has_column
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

  // Loads narrow gradients, widened, without asynchronous copies.
  __device__ __noinline__ void WidenTo(const Sum& sum, const int32_t* samples,
                                       int rows, float* to) const {
    struct alignas(2 * kFloats) Narrow {
      uint16_t bits[kFloats];
    };
    const uint16_t* const from =
        reinterpret_cast<const uint16_t*>(sum.from.grads) + sum.first + column;
    const bool is_float16 = sum.from.grad_type == FloatType::kFloat16;
    Narrow units[kUnits];
#pragma unroll
    for (int k = 0; k < kUnits; ++k) {
      const int i = row + k * rows_apart;
      if (i < rows && has_column) {
        units[k] =
            *reinterpret_cast<const Narrow*>(from + samples[i] * sum.dim);
      }
    }
#pragma unroll
    for (int k = 0; k < kUnits; ++k) {
      if (row + k * rows_apart >= rows || !has_column) continue;
#pragma unroll
      for (int x = 0; x < kFloats; ++x) {
        const uint16_t bits = units[k].bits[x];
        to[k * (kSumLoaders * kFloats) + x] =
            is_float16 ? FromFloat16(bits) : FromBFloat16(bits);
      }
    }
  }

  // REQUIRES: the stage's samples have been loaded.
  __device__ __forceinline__ void Gradients(const Sum& sum, uint32_t stage,
                                            SumStages* stages) const {
    const int rows = sum.rows(stage);
    const int32_t* const samples = stages->samples[stage % (2 * kSumStages)];
    float* const to = stages->grads[stage % kSumStages] + thread * kFloats;
    if (sum.from.grad_type == FloatType::kFloat32) {
      const float* const from = sum.from.grads + sum.first + column;
#pragma unroll
      for (int k = 0; k < kUnits; ++k) {
        const int i = row + k * rows_apart;
        if (i < rows && has_column) {
          __pipeline_memcpy_async(to + k * (kSumLoaders * kFloats),
                                  from + samples[i] * sum.dim, sizeof(Unit));
        }
      }
    } else {
      WidenTo(sum, samples, rows, to);
    }
    if (thread >= rows) return;
    float* const scale = stages->scales[stage % kSumStages] + thread;
    if (sum.from.factors != nullptr) {
      __pipeline_memcpy_async(scale, sum.from.factors + samples[thread],
                              sizeof(float));
    }
  }
};
static_assert(1 << kStageRowsLog2 <= kSumLoaders, "a sample for each");

// Returns sum + grads[0] + grads[stride] + ..., each times its scale if there
// is one: one lane's work for a stage. The next addends are read before the
// current ones are added. The stride is a constant, so that addresses cost
// nothing.
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

// Called by all threads of a block of kSumThreads. Lane l of the last warp
// returns the sum of column first + l.
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
  const bool is_scaled = sum.from.factors != nullptr;
  const int column =
      min(static_cast<int>(threadIdx.x) % kSumLanes, sum.columns - 1);
  float total = -0.0f;  // leaves every first addend unchanged
  for (uint32_t s = 0; s < num_stages; ++s) {
    if (!adds) __pipeline_wait_prior(kAhead - 1);
    // Group s has been loaded, and stage s - 1 has been added.
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

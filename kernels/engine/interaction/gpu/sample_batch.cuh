// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Loads a block's samples into shared memory; used by both kernels for small
// samples.

#ifndef KERNELS_ENGINE_INTERACTION_GPU_SAMPLE_BATCH_CUH_
#define KERNELS_ENGINE_INTERACTION_GPU_SAMPLE_BATCH_CUH_

#include <cuda_pipeline_primitives.h>

#include <cstdint>

#include "kernels/engine/interaction/gpu/small_samples.h"

namespace ev {
namespace gpu {

constexpr int kThreads = 256;
// Vectors of a tile of pairs, and rows of a tile of gradients: one float4.
constexpr int kTile = 4;

// A kernel parameter: with the others it must not exceed 4 KB.
struct SampleBatch {
  const float* vectors[kMostVectors];
  int64_t num_samples;
  int num_vectors;
  int dim;
  int stride;  // floats per row in shared memory, a multiple of 4
  int samples_of_block;
  int log_lanes;  // 2^log_lanes threads load a row
  bool by_fours;  // rows can be read 16 bytes at a time
};

__device__ __forceinline__ int PairsBefore(int row) {
  return row * (row - 1) / 2;
}

// Returns the largest row whose first pair is at or before 'pair': row (row -
// 1) / 2 <= pair. Exact, since pairs are below 2^14.
__device__ __forceinline__ int RowOfPair(int pair) {
  int row = static_cast<int>(
      (1.0f + sqrtf(8.0f * static_cast<float>(pair) + 1.0f)) * 0.5f);
  while (PairsBefore(row) > pair) --row;
  while (PairsBefore(row + 1) <= pair) ++row;
  return row;
}

// Starts loading samples [first, first + count), [count, num_vectors, stride].
// Consecutive threads read adjacent memory.
__device__ __forceinline__ void BeginLoad(const SampleBatch& in, int64_t first,
                                          int count, float* rows) {
  const int lanes = 1 << in.log_lanes;
  const int lane = threadIdx.x & (lanes - 1);
  const int num_rows = count * in.num_vectors;
  for (int row = threadIdx.x >> in.log_lanes; row < num_rows;
       row += kThreads >> in.log_lanes) {
    const int vector = row / count, sample = row - vector * count;
    const float* const from = in.vectors[vector] + (first + sample) * in.dim;
    float* const to = rows + (sample * in.num_vectors + vector) * in.stride;
    if (in.by_fours) {
      for (int c = lane * 4; c < in.dim; c += lanes * 4) {
        __pipeline_memcpy_async(to + c, from + c, 16);
      }
    } else {
      for (int c = lane; c < in.stride; c += lanes) {
        to[c] = c < in.dim ? from[c] : 0.0f;
      }
    }
  }
  __pipeline_commit();
}

// Waits for the load, and for all writes of the block's threads.
__device__ __forceinline__ void EndLoad() {
  __pipeline_wait_prior(0);
  __syncthreads();
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_INTERACTION_GPU_SAMPLE_BATCH_CUH_

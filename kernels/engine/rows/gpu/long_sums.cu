// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A block sums a key (combine/ordered_sum.cuh). No list of the keys is made: of
// those that begin among kManyOccurrences places in a row only the last can
// occur so often, and a warp looks for it.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/combine/ordered_sum.cuh"
#include "kernels/engine/rows/gpu/long_sums.h"

namespace ev {
namespace gpu {
namespace {

constexpr int64_t kMaxBlocks = 1 << 16;
// In how many stretches of kManyOccurrences places a block looks for keys.
constexpr int kStretches = 8;

// How many of ends [n], which do not descend, are below 'bound': by a warp,
// each lane of which looks at the last of a stretch.
__device__ int64_t CountBelow(const int32_t* ends, int64_t n, int64_t bound) {
  int64_t begin = 0;
  while (n > 0) {
    const int64_t stretch = n / kSumLanes + 1;
    const int64_t at = begin + threadIdx.x % kSumLanes * stretch + stretch - 1;
    const bool is_below = at < begin + n && ends[at] < bound;
    const int64_t below = __popc(__ballot_sync(~0u, is_below)) * stretch;
    n = min(stretch - 1, n - below);
    begin += below;
  }
  return begin;
}

// The key that begins in a stretch and occurs so often, or -1: by a warp.
__device__ int64_t FindLong(const int32_t* ends, int64_t num_keys,
                            int64_t stretch) {
  const int64_t from = stretch * kManyOccurrences;
  const int64_t u = CountBelow(ends, num_keys, from + kManyOccurrences);
  if (u == num_keys) return -1;
  const int64_t begin = u == 0 ? 0 : ends[u - 1];
  return begin >= from && ends[u] - begin >= kManyOccurrences ? u : -1;
}

// A block's work: kStretches stretches of kManyOccurrences places each, and
// kSumColumns columns.
template <typename Unit>
__global__ void __launch_bounds__(kSumThreads, 2)
    LongSumsKernel(PooledGradients gradients, int64_t num_keys, int64_t dim,
                   int64_t num_stretches, float* sums) {
  __shared__ SumStages stages;
  __shared__ int64_t found[kStretches];
  const int64_t cuts = (dim + kSumColumns - 1) / kSumColumns;
  const int64_t groups = (num_stretches + kStretches - 1) / kStretches;
  Sum sum;
  sum.from.samples = gradients.samples;
  sum.from.weights = gradients.weights;
  sum.from.factors = gradients.factors;
  sum.from.grads = gradients.grads;
  sum.dim = dim;
  for (int64_t i = blockIdx.x; i < groups * cuts; i += gridDim.x) {
    const int64_t first_stretch = i / cuts * kStretches;
    const int warp = threadIdx.x / kSumLanes;
    if (warp < kStretches) {
      const int64_t stretch = first_stretch + warp;
      const int64_t u = stretch < num_stretches
                            ? FindLong(gradients.ends, num_keys, stretch)
                            : -1;
      if (threadIdx.x % kSumLanes == 0) found[warp] = u;
    }
    __syncthreads();
    sum.first = i % cuts * kSumColumns;
    sum.Fit();
    for (int k = 0; k < kStretches; ++k) {
      const int64_t u = found[k];
      if (u < 0) continue;
      sum.begin = u == 0 ? 0 : gradients.ends[u - 1];
      sum.count = static_cast<uint32_t>(gradients.ends[u] - sum.begin);
      const float total = SumByBlock<Unit>(sum, &stages);
      const int lane = static_cast<int>(threadIdx.x) - kSumLoaders;
      if (lane >= 0 && lane < sum.columns) {
        sums[(first_stretch + k) * dim + sum.first + lane] = total;
      }
      __syncthreads();  // the stages are used again
    }
    __syncthreads();  // so is 'found'
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
  const int64_t groups = (num_stretches + kStretches - 1) / kStretches;
  const unsigned blocks =
      static_cast<unsigned>(std::min(kMaxBlocks, groups * cuts));
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

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The device code of long_sums.h.
//
// A block sums a key (combine/ordered_sum.cuh). No list of the keys is made.
// Among the keys that begin within kManyOccurrences adjacent places, only the
// last can have that many occurrences. A warp searches for it.

#ifndef KERNELS_ENGINE_COMBINE_GPU_LONG_SUMS_CUH_
#define KERNELS_ENGINE_COMBINE_GPU_LONG_SUMS_CUH_

#include <algorithm>
#include <cstdint>

#include "kernels/engine/combine/gpu/long_sums.h"
#include "kernels/engine/combine/ordered_sum.cuh"

namespace ev {
namespace gpu {

// Stretches of kManyOccurrences places that a block searches.
constexpr int kLongStretches = 8;
// A key that begins in the last, shorter stretch does not occur often enough.
__host__ __device__ __forceinline__ int64_t NumLongStretches(int64_t num_ids) {
  return num_ids / kManyOccurrences;
}
// Number of blocks that SumLongKeys can use.
inline int64_t LongSumBlocks(int64_t num_ids, int64_t dim) {
  const int64_t groups =
      (NumLongStretches(num_ids) + kLongStretches - 1) / kLongStretches;
  return groups * ((dim + kSumColumns - 1) / kSumColumns);
}

// Returns how many of ends [n], which are ascending, are below 'bound'. Called
// by a warp; each lane tests the last element of one stretch.
__device__ __forceinline__ int64_t CountBelow(const int32_t* ends, int64_t n,
                                              int64_t bound) {
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

// Returns the key that begins in a stretch and has kManyOccurrences or more, or
// -1. Called by a warp.
__device__ __forceinline__ int64_t FindLong(const int32_t* ends,
                                            int64_t num_keys, int64_t stretch) {
  const int64_t from = stretch * kManyOccurrences;
  const int64_t u = CountBelow(ends, num_keys, from + kManyOccurrences);
  if (u == num_keys) return -1;
  const int64_t begin = u == 0 ? 0 : ends[u - 1];
  return begin >= from && ends[u] - begin >= kManyOccurrences ? u : -1;
}

struct LongSumsShared {
  SumStages stages;
  int64_t found[kLongStretches];
};

// For each key whose occurrences [begin, end) are kManyOccurrences or more,
// writes its sum to sums[begin / kManyOccurrences, :]; no two keys share a row.
// Other rows of sums are unspecified. num_ids: number of all occurrences. The
// work of gridDim.x blocks of kSumThreads threads. Unit: float4 if dim is a
// multiple of 4 and the gradients are aligned to it, else float.
template <typename Unit>
__device__ void SumLongKeys(const PooledGradients& gradients, int64_t num_keys,
                            int64_t num_ids, int64_t dim, float* sums,
                            LongSumsShared* shared) {
  const int64_t num_stretches = NumLongStretches(num_ids);
  const int64_t cuts = (dim + kSumColumns - 1) / kSumColumns;
  const int64_t groups = (num_stretches + kLongStretches - 1) / kLongStretches;
  Sum sum;
  sum.from.samples = gradients.samples;
  sum.from.factors = gradients.factors;
  sum.from.grads = gradients.grads;
  sum.from.grad_type = gradients.grad_type;
  sum.dim = dim;
  for (int64_t i = blockIdx.x; i < groups * cuts; i += gridDim.x) {
    const int64_t first_stretch = i / cuts * kLongStretches;
    const int warp = threadIdx.x / kSumLanes;
    if (warp < kLongStretches) {
      const int64_t stretch = first_stretch + warp;
      const int64_t u = stretch < num_stretches
                            ? FindLong(gradients.ends, num_keys, stretch)
                            : -1;
      if (threadIdx.x % kSumLanes == 0) shared->found[warp] = u;
    }
    __syncthreads();
    sum.first = i % cuts * kSumColumns;
    sum.Fit();
    for (int k = 0; k < kLongStretches; ++k) {
      const int64_t u = shared->found[k];
      if (u < 0) continue;
      sum.begin = u == 0 ? 0 : gradients.ends[u - 1];
      sum.count = static_cast<uint32_t>(gradients.ends[u] - sum.begin);
      const float total = SumByBlock<Unit>(sum, &shared->stages);
      const int lane = static_cast<int>(threadIdx.x) - kSumLoaders;
      if (lane >= 0 && lane < sum.columns) {
        sums[(first_stretch + k) * dim + sum.first + lane] = total;
      }
      __syncthreads();  // before the stages are reused
    }
    __syncthreads();  // before 'found' is reused
  }
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_COMBINE_GPU_LONG_SUMS_CUH_

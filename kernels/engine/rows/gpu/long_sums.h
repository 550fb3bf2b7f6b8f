// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Sums of the gradients of keys that occur very often in a batch, each formed
// in the order of the key's occurrences.

#ifndef KERNELS_ENGINE_ROWS_GPU_LONG_SUMS_H_
#define KERNELS_ENGINE_ROWS_GPU_LONG_SUMS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// Occurrences of combine/pooling_gradient.h in device memory, and the
// gradients of the samples that they name.
struct PooledGradients {
  const int32_t* ends = nullptr;
  const int32_t* samples = nullptr;
  // At most one of them.
  const float* weights = nullptr;  // of each occurrence
  const float* factors = nullptr;  // of each sample
  const float* grads = nullptr;    // [B, dim]
};

// From that many occurrences on a block of threads sums a key: to begin, and
// the additions, take less time then than what a thread would wait for memory.
constexpr int32_t kManyOccurrences = 256;

// Of 'sums' below.
size_t LongSumBytes(int64_t num_ids, int64_t dim);

// sums[begin / kManyOccurrences, :] = the sum of each key whose occurrences
// [begin, end) are kManyOccurrences or more; no two have the same place. The
// rest of sums is unspecified. num_ids: all occurrences. Enqueues one kernel at
// most.
Status LaunchLongSums(const PooledGradients& gradients, int64_t num_keys,
                      int64_t num_ids, int64_t dim, float* sums,
                      StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_LONG_SUMS_H_

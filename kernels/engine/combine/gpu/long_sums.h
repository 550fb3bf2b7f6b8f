// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Sums the gradients of keys that occur very often in a batch, each in the
// order of the key's occurrences.

#ifndef KERNELS_ENGINE_COMBINE_GPU_LONG_SUMS_H_
#define KERNELS_ENGINE_COMBINE_GPU_LONG_SUMS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/engine/base/float_type.h"

namespace ev {
namespace gpu {

// The occurrences of combine/pooling_gradient.h, and the gradients of their
// samples, in device memory.
struct PooledGradients {
  const int32_t* ends = nullptr;
  const int32_t* samples = nullptr;
  const float* factors = nullptr;  // of each sample; null: all 1
  const float* grads = nullptr;    // [B, dim], of grad_type
  FloatType grad_type = FloatType::kFloat32;
};

// A block sums the keys with at least this many occurrences. Starting a block
// and adding then take less time than one thread would wait for memory.
constexpr int32_t kManyOccurrences = 256;

// Returns the size of 'sums' of SumLongKeys (long_sums.cuh).
inline size_t LongSumBytes(int64_t num_ids, int64_t dim) {
  return num_ids / kManyOccurrences * dim * sizeof(float);
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_COMBINE_GPU_LONG_SUMS_H_

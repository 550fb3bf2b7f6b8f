// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Limits of a batch's size. Header only, so that op definitions, which do not
// link the engine, use the same numbers.

#ifndef KERNELS_ENGINE_BASE_BATCH_LIMITS_H_
#define KERNELS_ENGINE_BASE_BATCH_LIMITS_H_

#include <cstdint>

namespace ev {

// Maximum number of ids, and of samples, in one table's batch. Lookup plans
// number both with 32 bits.
constexpr int64_t kMaxBatch = (int64_t{1} << 31) - 2;

// Checks a size that comes from a tensor and can be any number. Call it before
// making a shape from the size: TensorFlow aborts the process if a shape has
// more elements than int64 can count.
inline bool IsBatchSize(int64_t size) { return size >= 0 && size <= kMaxBatch; }

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_BATCH_LIMITS_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// How large a batch may be. Header only, so that definitions of ops, which link
// no engine, have the same numbers.

#ifndef KERNELS_ENGINE_BASE_BATCH_LIMITS_H_
#define KERNELS_ENGINE_BASE_BATCH_LIMITS_H_

#include <cstdint>

namespace ev {

// The most ids, and the most samples, of one table's batch: plans number both
// with 32 bits.
constexpr int64_t kMaxBatch = (int64_t{1} << 31) - 2;

// A size that comes from a tensor can be any number. It is checked before a
// shape is made of it: TensorFlow ends the process when it makes a shape whose
// number of elements is beyond int64.
inline bool IsBatchSize(int64_t size) { return size >= 0 && size <= kMaxBatch; }

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_BATCH_LIMITS_H_

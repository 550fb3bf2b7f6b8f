// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// MixKey, the public hash of a key: two rounds. Each round multiplies by an odd
// number, which carries every bit upwards, and folds the upper half onto the
// lower, which brings bits down. Both steps are invertible, so distinct keys
// never share a full hash. With one round, ids that differ only in their high
// bits would collide. A third round makes no measurable difference to a table
// (hash_test.cc fills tables with a thousand patterns of keys).

#ifndef KERNELS_ENGINE_BASE_HASH_H_
#define KERNELS_ENGINE_BASE_HASH_H_

#include <cstdint>

#include "kernels/engine/base/host_device.h"

namespace ev {

EV_HOST_DEVICE uint64_t MixKey(int64_t key) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15ull;  // 2^64 / golden ratio
  uint64_t x = static_cast<uint64_t>(key);
  x *= kOdd;
  x ^= x >> 32;
  x *= kOdd;
  x ^= x >> 32;
  return x;
}

// Maps 32 uniformly random bits to [0, n) without a division. Monotonic in
// 'bits'.
inline uint32_t FastRange(uint32_t bits, uint32_t n) {
  return static_cast<uint32_t>((static_cast<uint64_t>(bits) * n) >> 32);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_HASH_H_

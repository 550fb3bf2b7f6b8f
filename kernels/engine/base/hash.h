// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The hash of a key: two rounds of an odd multiplication, which carries every
// bit upwards, and a fold of the upper half onto the lower, which brings them
// down. Each is invertible, so distinct keys never share a full hash. One round
// less and ids that differ in their high bits only would pile up; a third would
// change nothing that a table can notice (hash_test.cc fills tables with a
// thousand patterns of keys).

#ifndef KERNELS_ENGINE_BASE_HASH_H_
#define KERNELS_ENGINE_BASE_HASH_H_

#include <cstdint>

namespace ev {

inline uint64_t MixKey(int64_t key) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15ull;  // 2^64 / golden ratio
  uint64_t x = static_cast<uint64_t>(key);
  x *= kOdd;
  x ^= x >> 32;
  x *= kOdd;
  x ^= x >> 32;
  return x;
}

// Maps 32 uniformly random bits to [0, n) without a division; monotonic in
// bits.
inline uint32_t FastRange(uint32_t bits, uint32_t n) {
  return static_cast<uint32_t>((static_cast<uint64_t>(bits) * n) >> 32);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_HASH_H_

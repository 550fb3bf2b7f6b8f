// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The hash of a key. It is a bijection of 64 bits (two odd multiplications and
// three xor-shifts are each invertible), so distinct keys never share a full
// hash, and every output bit depends on every input bit: the index takes its
// directory from the high bits and its bucket from the low ones.

#ifndef KERNELS_ENGINE_BASE_HASH_H_
#define KERNELS_ENGINE_BASE_HASH_H_

#include <cstdint>

namespace ev {

inline uint64_t MixKey(int64_t key) {
  uint64_t x = static_cast<uint64_t>(key);
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  x ^= x >> 31;
  return x;
}

// Maps 32 uniformly random bits to [0, n) without a division; monotonic in bits.
inline uint32_t FastRange(uint32_t bits, uint32_t n) {
  return static_cast<uint32_t>((static_cast<uint64_t>(bits) * n) >> 32);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_HASH_H_

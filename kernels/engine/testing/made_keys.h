// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Keys that an attacker that has read MixKey (base/hash.h) can choose to slow a
// table down.

#ifndef KERNELS_ENGINE_TESTING_MADE_KEYS_H_
#define KERNELS_ENGINE_TESTING_MADE_KEYS_H_

#include <cstdint>

namespace ev {
namespace testing {

// Returns the key with MixKey h.
inline int64_t KeyOfMix(uint64_t h) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15ull;
  // correct in 3 bits, then in twice as many each time
  uint64_t inverse = kOdd;
  for (int i = 0; i < 5; ++i) inverse *= 2 - kOdd * inverse;
  for (int round = 0; round < 2; ++round) h = (h ^ h >> 32) * inverse;
  return static_cast<int64_t>(h);
}

// Returns key i of 2^32 keys that share the lower half of their MixKey, or of
// 2^32 keys that share the upper half.
inline int64_t KeyOfOneLowerHalf(uint32_t i) {
  return KeyOfMix(uint64_t{i} << 32 | 77);
}
inline int64_t KeyOfOneUpperHalf(uint32_t i) {
  return KeyOfMix(uint64_t{77} << 32 | i);
}

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_MADE_KEYS_H_

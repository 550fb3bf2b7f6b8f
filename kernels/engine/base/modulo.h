// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Remainders that are never negative: they assign a key, also a negative one,
// to one of n default rows, partitions or ranks.

#ifndef KERNELS_ENGINE_BASE_MODULO_H_
#define KERNELS_ENGINE_BASE_MODULO_H_

#include <cstdint>

namespace ev {

// Returns a mod b, in [0, b). REQUIRES: b >= 1.
inline int64_t FloorMod(int64_t a, int64_t b) {
  const int64_t r = a % b;
  return r < 0 ? r + b : r;
}

// Computes x mod n for any 64-bit x by two multiplications instead of a
// division, whose latency is several times as long. REQUIRES: 1 <= n < 2^31.
class FastModulo {
 public:
  explicit FastModulo(int64_t n);

  int64_t divisor() const { return static_cast<int64_t>(n_); }

  uint64_t Unsigned(uint64_t x) const {
    const uint64_t high = static_cast<uint64_t>(
        (static_cast<unsigned __int128>(magic_) * x) >> 64);
    const uint64_t quotient = (((x - high) >> first_shift_) + high) >> shift_;
    return x - quotient * n_;
  }

  // Returns FloorMod(key, n).
  int64_t Floor(int64_t key) const {
    // Adds 2^63, so that every key is a natural number, and subtracts the
    // remainder of 2^63 again.
    const uint64_t x = static_cast<uint64_t>(key) ^ (uint64_t{1} << 63);
    const int64_t r = static_cast<int64_t>(Unsigned(x)) - bias_;
    return r < 0 ? r + static_cast<int64_t>(n_) : r;
  }

 private:
  uint64_t n_, magic_;
  int first_shift_, shift_;
  int64_t bias_;  // 2^63 mod n
};

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_MODULO_H_

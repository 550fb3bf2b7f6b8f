// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/modulo.h"

#include <algorithm>

namespace ev {

// With l = ceil(log2 n), the multiplier 2^64 * (2^l - n) / n + 1 makes the
// quotient of every 64-bit x exact. It represents a 65-bit multiplier whose top
// bit is the '(x - high) >> 1'.
FastModulo::FastModulo(int64_t n) : n_(static_cast<uint64_t>(n)) {
  int log2 = 0;
  while ((uint64_t{1} << log2) < n_) ++log2;
  const unsigned __int128 numerator =
      static_cast<unsigned __int128>((uint64_t{1} << log2) - n_) << 64;
  magic_ = static_cast<uint64_t>(numerator / n_) + 1;
  first_shift_ = std::min(log2, 1);
  shift_ = std::max(log2 - 1, 0);
  bias_ = static_cast<int64_t>((uint64_t{1} << 63) % n_);
}

}  // namespace ev

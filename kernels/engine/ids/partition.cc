// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/partition.h"

#include <algorithm>
#include <cstddef>

namespace ev {

// With l = ceil(log2 n), the multiplier 2^64 * (2^l - n) / n + 1 makes the
// quotient of every 64-bit x exact; it stands for a 65-bit one whose top bit is
// the '(x - high) >> 1'.
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

void PartitionByOwner(Span<const int64_t> keys, const OwnerOf& owner,
                      int64_t* partitioned, int32_t* positions,
                      int64_t* offsets) {
  const int n = owner.num_owners();
  std::fill(offsets, offsets + n + 1, 0);
  for (const int64_t key : keys) ++offsets[owner(key) + 1];
  for (int o = 0; o < n; ++o) offsets[o + 1] += offsets[o];
  // Each offset moves to the end of its owner, which is the next one's begin.
  for (size_t i = 0; i < keys.size(); ++i) {
    const int64_t j = offsets[owner(keys[i])]++;
    partitioned[j] = keys[i];
    if (positions != nullptr) positions[j] = static_cast<int32_t>(i);
  }
  for (int o = n; o > 0; --o) offsets[o] = offsets[o - 1];
  offsets[0] = 0;
}

}  // namespace ev

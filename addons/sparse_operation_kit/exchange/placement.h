// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_PLACEMENT_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_PLACEMENT_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace sok {

// Which rank owns a key of a table: ranks[floormod(key, number of ranks)]. All
// ranks 0, 1, ..., or one, or a list in which a rank may come several times.
class Placement {
 public:
  // REQUIRES: at least one rank.
  explicit Placement(std::vector<int32_t> ranks) : ranks_(std::move(ranks)) {
    const uint64_t n = ranks_.size();
    mask_ = (n & (n - 1)) == 0 ? static_cast<int64_t>(n) - 1 : -1;
  }

  const std::vector<int32_t>& ranks() const { return ranks_; }

  int32_t OwnerOf(int64_t key) const {
    // A mask is the floor modulo of a power of two, for negative keys too.
    if (mask_ >= 0) return ranks_[key & mask_];
    const int64_t n = static_cast<int64_t>(ranks_.size());
    const int64_t r = key % n;
    return ranks_[r < 0 ? r + n : r];
  }

 private:
  std::vector<int32_t> ranks_;
  int64_t mask_;
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_PLACEMENT_H_

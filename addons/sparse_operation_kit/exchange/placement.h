// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_PLACEMENT_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_PLACEMENT_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/engine/base/modulo.h"

namespace sok {

// Assigns each key of a table to its owner rank: ranks[floormod(key, number of
// ranks)]. The list may be all ranks 0, 1, ..., one rank, or any ranks; a rank
// may occur several times.
class Placement {
 public:
  // REQUIRES: at least one rank.
  explicit Placement(std::vector<int32_t> ranks)
      : ranks_(std::move(ranks)),
        modulo_(static_cast<int64_t>(ranks_.size())) {}

  const std::vector<int32_t>& ranks() const { return ranks_; }

  int32_t OwnerOf(int64_t key) const { return ranks_[modulo_.Floor(key)]; }

 private:
  std::vector<int32_t> ranks_;
  ev::FastModulo modulo_;
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_PLACEMENT_H_

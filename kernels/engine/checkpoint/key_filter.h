// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Re-sharding: which keys of a checkpoint belong to the table that is restored,
// whatever number of parts or ranks saved them.

#ifndef KERNELS_ENGINE_CHECKPOINT_KEY_FILTER_H_
#define KERNELS_ENGINE_CHECKPOINT_KEY_FILTER_H_

#include <cstdint>
#include <vector>

#include "kernels/engine/ids/key_partition.h"

namespace ev {

struct KeyFilter {
  // Of a variable in parts, the table is this one (key_partition.h); 1: whole.
  int part = 0, num_parts = 1;
  // placement[floormod(key, length)] is the rank that holds the key; empty: the
  // table is not spread over ranks.
  std::vector<int> placement;
  int rank = 0;  // of this process

  bool TakesAll() const { return num_parts == 1 && placement.empty(); }
  bool Takes(int64_t key) const {
    return IsInPart(key, part, num_parts) &&
           (placement.empty() ||
            placement[FloorMod(key, placement.size())] == rank);
  }
  // The table's place among those that are saved together: its part, or the
  // rank.
  int place() const { return placement.empty() ? part : rank; }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_CHECKPOINT_KEY_FILTER_H_

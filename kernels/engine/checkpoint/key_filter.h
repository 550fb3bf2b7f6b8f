// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Re-sharding: decides which keys of a checkpoint belong to the table being
// restored, whatever number of parts or ranks saved them.

#ifndef KERNELS_ENGINE_CHECKPOINT_KEY_FILTER_H_
#define KERNELS_ENGINE_CHECKPOINT_KEY_FILTER_H_

#include <cstdint>
#include <vector>

#include "kernels/engine/ids/key_partition.h"

namespace ev {

struct KeyFilter {
  // The table is this part of a variable (key_partition.h); 1 part: the whole.
  int part = 0, num_parts = 1;
  // placement[floormod(key, length)] is the rank that holds the key. Empty: the
  // table is not distributed over ranks.
  std::vector<int> placement;
  int rank = 0;  // of this process

  bool TakesAll() const { return num_parts == 1 && placement.empty(); }
  bool Takes(int64_t key) const {
    return IsInPart(key, part, num_parts) &&
           (placement.empty() ||
            placement[FloorMod(key, placement.size())] == rank);
  }
  // Number of the table among those saved together: its part, or the rank.
  int place() const { return placement.empty() ? part : rank; }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_CHECKPOINT_KEY_FILTER_H_

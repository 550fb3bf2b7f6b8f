// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Sorts distinct keys by owner rank on the device, with the result of
// PartitionByOwner in ids/partition.h. It is enqueued after the kernels that
// find the distinct keys; their number is read in device memory.

#ifndef KERNELS_ENGINE_IDS_GPU_SORT_BY_OWNER_H_
#define KERNELS_ENGINE_IDS_GPU_SORT_BY_OWNER_H_

#include <cstdint>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// One table's keys and results. starts and sorted are pinned memory that the
// device writes; other pointers are device memory.
struct OwnedKeys {
  const int64_t* keys = nullptr;       // [U]
  const uint32_t* num_keys = nullptr;  // U
  int64_t most_keys = 0;               // upper bound of U; 1 to 2^30
  // The owner of key k is owners[floormod(k, num_residues)].
  const int32_t* owners = nullptr;
  int64_t num_residues = 0;
  int num_owners = 0;         // W, at most kMaxKeyOwners
  uint32_t* tiles = nullptr;  // [W * NumDistinctTiles(most_keys)] scratch
  uint32_t* total = nullptr;  // scratch
  uint32_t* done = nullptr;   // scratch, must start as all ones
  int32_t* places = nullptr;  // [U]: keys[i] is sorted[places[i]]
  int32_t* starts = nullptr;  // [W + 1] first key of each owner
  int64_t* sorted = nullptr;  // [U]
};

// Launches two kernels per kMostTables tables (tiles.cuh).
Status LaunchSortByOwner(Span<const OwnedKeys> tables, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_GPU_SORT_BY_OWNER_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Distinct keys sorted by owner, as PartitionByOwner of ids/partition.h sorts
// them, behind the dedup that finds them: how many there are the GPU knows.

#ifndef KERNELS_ENGINE_ROWS_GPU_SORT_BY_OWNER_H_
#define KERNELS_ENGINE_ROWS_GPU_SORT_BY_OWNER_H_

#include <cstdint>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// One table's. In device memory, but for starts and sorted: pinned memory that
// the device writes.
struct OwnedKeys {
  const int64_t* keys = nullptr;       // [U]
  const uint32_t* num_keys = nullptr;  // U
  int64_t most_keys = 0;               // at least U; 1 to 2^30
  // That of key k is owners[floormod(k, num_residues)].
  const int32_t* owners = nullptr;
  int64_t num_residues = 0;
  int num_owners = 0;         // W, at most kMaxKeyOwners
  uint32_t* tiles = nullptr;  // [W * NumDistinctTiles(most_keys)] scratch
  uint32_t* total = nullptr;  // scratch
  uint32_t* done = nullptr;   // scratch, all ones at first
  int32_t* places = nullptr;  // [U]: given key i is sorted[places[i]]
  int32_t* starts = nullptr;  // [W + 1]
  int64_t* sorted = nullptr;  // [U]
};

// Some two dozen tables have two launches together.
Status LaunchSortByOwner(Span<const OwnedKeys> tables, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_SORT_BY_OWNER_H_

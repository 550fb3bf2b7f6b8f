// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that find the distinct ids of batches, in order of first occurrence,
// and the number of each id's key, for DistinctGroup.

#ifndef KERNELS_ENGINE_IDS_GPU_DISTINCT_H_
#define KERNELS_ENGINE_IDS_GPU_DISTINCT_H_

#include <cstdint>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// Ids of a block of the kernels that count.
constexpr int64_t kDistinctTile = 1024;

// Numbers that are all ones at first: blocks that have counted, what is found
// about samples, and blocks of LaunchSortByOwner.
constexpr int kDistinctDone = 3;

inline int64_t NumDistinctEntries(int64_t num_ids) {
  return (num_ids + 1) / 2 * 4;
}
inline int64_t NumDistinctTiles(int64_t num_ids) {
  return (num_ids + kDistinctTile - 1) / kDistinctTile;
}

// Results in pinned memory.
struct DistinctCounts {
  uint32_t num_unique;
  uint32_t samples;  // SampleBits, if the GPU has checked samples
};

// One table's. Arrays in device memory, each aligned to 16 bytes, but those of
// 'sent': pinned memory that the device writes.
struct DistinctBatch {
  const void* ids = nullptr;  // [N], int64, or int32 when narrow
  uint32_t num_ids = 0;       // N, 1 to 2^30
  bool is_narrow = false;
  // All ones at first.
  unsigned long long* entries = nullptr;  // [NumDistinctEntries(N)] scratch
  uint32_t* done = nullptr;               // [kDistinctDone] scratch
  uint32_t* tiles = nullptr;              // [NumDistinctTiles(N)] scratch
  uint32_t* counted = nullptr;            // [1]: U
  uint32_t* heads = nullptr;              // [N] scratch
  // Samples that are in the GPU's memory, of one form: looked at, and their
  // offsets made.
  const int64_t* splits = nullptr;   // [B + 1]
  const int64_t* indices = nullptr;  // [N, 2]
  int64_t num_samples = 0;           // B
  int32_t* offsets = nullptr;        // [B + 1], of those
  int32_t* inverse = nullptr;        // [N]
  int64_t* keys = nullptr;           // [N], the first U of them
  int32_t* counts = nullptr;         // the same
  struct {
    int64_t* keys = nullptr;  // [N], the first U of them; null: not needed
    DistinctCounts* counts = nullptr;
  } sent;
};

// Fills all of them. Some two dozen tables have five launches together, and one
// more where samples are looked at.
Status LaunchDistinct(Span<const DistinctBatch> batches, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_GPU_DISTINCT_H_

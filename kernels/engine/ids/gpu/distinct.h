// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that deduplicate the ids of batches, for DistinctGroup. The distinct
// keys are numbered in order of first occurrence; each id gets the number of
// its key.

#ifndef KERNELS_ENGINE_IDS_GPU_DISTINCT_H_
#define KERNELS_ENGINE_IDS_GPU_DISTINCT_H_

#include <cstdint>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// A tile: the ids per block of the kernels that count.
constexpr int64_t kDistinctTile = 1024;

// Number of uint32 per table that start as all ones: the count of blocks that
// have finished, the inverted SampleBits, and the count of blocks of
// LaunchSortByOwner.
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

// One table's batch. Arrays are in device memory, aligned to 16 bytes, except
// those of 'sent', which are in pinned memory that the device writes.
struct DistinctBatch {
  const void* ids = nullptr;  // [N], int64, or int32 when narrow
  uint32_t num_ids = 0;       // N, 1 to 2^30
  bool is_narrow = false;
  // entries and done must start as all ones.
  unsigned long long* entries = nullptr;  // [NumDistinctEntries(N)] scratch
  uint32_t* done = nullptr;               // [kDistinctDone] scratch
  uint32_t* tiles = nullptr;              // [NumDistinctTiles(N)] scratch
  uint32_t* counted = nullptr;            // [1]: U
  uint32_t* heads = nullptr;              // [N] scratch
  // Samples in device memory: one of 'splits' and 'indices' is not null. They
  // are checked, and 'offsets' is computed from them.
  const int64_t* splits = nullptr;   // [B + 1]
  const int64_t* indices = nullptr;  // [N, 2]
  int64_t num_samples = 0;           // B
  int32_t* offsets = nullptr;        // [B + 1]
  int32_t* inverse = nullptr;        // [N]
  int64_t* keys = nullptr;           // [N]; the first U are written
  int32_t* counts = nullptr;         // [N]; the first U are written
  struct {
    int64_t* keys = nullptr;  // [N]; U are written; null: not needed
    DistinctCounts* counts = nullptr;
  } sent;
};

// Deduplicates all batches. Launches five kernels per kMostTables tables
// (tiles.cuh), and one more if samples have to be checked.
Status LaunchDistinct(Span<const DistinctBatch> batches, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_GPU_DISTINCT_H_

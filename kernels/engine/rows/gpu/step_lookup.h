// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of a step's lookup (rows/gpu_step.h): ids of all tables are found
// in what the GPU knows, and rows go from the tables to the outputs.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_LOOKUP_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_LOOKUP_H_

#include <cstdint>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/gpu/known_keys.h"
#include "kernels/engine/rows/gpu/row_pieces.h"
#include "kernels/engine/rows/gpu/samples_there.h"

namespace ev {
namespace gpu {

// Tables are worked on by groups of lanes fit for the row (ClassOfDim of
// gpu_step/step_plan.cuh), and by a kernel of their own where each
// sample is one id.
constexpr int kPoolKinds = 10;
inline int PoolKind(int dim_class, bool one_id_each) {
  return 2 * dim_class + (one_id_each ? 0 : 1);
}

// One table of the batch. All arrays are in device memory.
struct StepLookupTable {
  KnownKeysView known;               // for LaunchFindNames
  const void* ids = nullptr;         // [N], int64 or int32
  const int32_t* offsets = nullptr;  // [B + 1]; null: one id each
  // Of ids that were in the GPU's memory: where LaunchFindNames keeps them,
  // since the caller's go; and the samples, as row splits or as indices, of
  // which LaunchFindSamples makes the offsets.
  void* kept = nullptr;               // [N]
  const int64_t* splits = nullptr;    // [B + 1]
  const int64_t* indices = nullptr;   // [N, 2]
  int32_t* made = nullptr;            // [B + 1], the offsets
  int64_t id_begin = 0, num_ids = 0;  // in the arrays of the batch
  int64_t sample_begin = 0, num_samples = 0;
  // Of a piece of a table: how many of the table's samples come before it.
  int64_t samples_before = 0;
  // For LaunchPoolNames.
  PiecesView rows;
  const float* defaults = nullptr;
  float* out = nullptr;  // [B, dim]
  int32_t dim = 0;
  int32_t combiner = 0;  // ev::Combiner
  bool is_narrow = false;
  // For LaunchFindNames. Not 0: an unknown id is called after its default row,
  // AbsentAs(first_default + floormod(id, num_defaults)).
  int64_t first_default = 0, num_defaults = 0;
};

struct StepLookup {
  const StepLookupTable* tables = nullptr;  // [T]
  int num_tables = 0;
  // [T + 1] the first block of each table. pool_tiles: of the pool_order-th.
  const int32_t* find_tiles = nullptr;
  const int32_t* pool_tiles = nullptr;
  const int32_t* pool_order = nullptr;  // [T]
  // Of the ids of all tables: as DevicePooling::rows, or kNoRow.
  RowHandle* names = nullptr;
  uint32_t* samples = nullptr;  // of each id, within its table; null: unwanted
  float* factors = nullptr;     // of each sample, what its gradient is times;
                                // null: unwanted
  uint32_t* unknown = nullptr;  // ids that are not known, in any order
  int64_t* unknown_keys = nullptr;  // their keys; null: unwanted
  uint32_t* num_unknown = nullptr;  // zero at first
  uint32_t* found = nullptr;        // [T] bits of SampleBits, zero at first
};

// Ids, or samples, of a block.
constexpr int64_t kFindTile = 256;
constexpr int64_t kPoolTile = 256;

// Checks the samples of tables that have 'made', and makes their offsets, which
// are right unless 'found' says that they are not in order. sample_tiles
// [T + 1]: the first block of each table, of max(N, B) + 1 threads; others have
// none. blocks: sample_tiles[T]. One launch.
Status LaunchFindSamples(const StepLookup& lookup, const int32_t* sample_tiles,
                         int blocks, StreamView stream);

// Fills names and unknown. blocks: find_tiles[T]. One launch.
Status LaunchFindNames(const StepLookup& lookup, int blocks, StreamView stream);

// names[ids[k]] = given[k], k < count. Device memory. One launch.
Status LaunchSetNames(const uint32_t* ids, const RowHandle* given,
                      int64_t count, RowHandle* names, StreamView stream);

// Writes the outputs of tables pool_order [begin, end), all of one kind, and
// samples and factors where they are wanted. blocks: those from first_block on.
// Outputs are 16 byte aligned where 4 divides dim. One launch.
Status LaunchPoolNames(const StepLookup& lookup, int kind, int begin, int end,
                       int first_block, int blocks, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_LOOKUP_H_

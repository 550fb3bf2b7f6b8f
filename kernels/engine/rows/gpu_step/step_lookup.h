// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of a step's lookup (rows/gpu_step.h). They look up the ids of all
// tables in the GPU's key tables (rows/gpu/known_keys.h), and pool the rows
// into the outputs. Those of step_fetch.h may run between the two.
//
// The handle of an id is that of its row, AbsentAs(r) for default row r, or
// kNoRow if the GPU has no row for it. An id is UNKNOWN if its key is not in
// the GPU's key table.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_STEP_LOOKUP_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_STEP_LOOKUP_H_

#include <cstdint>

#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/ids/gpu/samples_on_device.h"
#include "kernels/engine/rows/gpu/known_keys.h"
#include "kernels/engine/rows/gpu/row_pieces.h"

namespace ev {
namespace gpu {

// Tables are divided into kinds, each with a kernel of its own: by the group of
// lanes that fits a row (ClassOfDim of gpu_step/step_plan.cuh), by whether each
// sample is exactly one id, and by whether values are narrow.
constexpr int kPoolKindsEach = 4;  // of a class
constexpr int kPoolKinds = 5 * kPoolKindsEach;
inline int PoolKind(int dim_class, bool one_id_each, bool is_narrow) {
  return kPoolKindsEach * dim_class + (is_narrow ? 2 : 0) +
         (one_id_each ? 0 : 1);
}

// One table of the batch. All arrays are in device memory.
struct StepLookupTable {
  KnownKeysView known;               // read by LaunchFindHandles
  const void* ids = nullptr;         // [N], int64 or int32
  const int32_t* offsets = nullptr;  // [B + 1]; null: one id each
  // For ids that the caller has in GPU memory. LaunchFindHandles copies them to
  // 'kept', because the caller frees its own. LaunchFindSamples makes 'made'
  // from the samples, which are row splits or indices.
  void* kept = nullptr;               // [N]
  const int64_t* splits = nullptr;    // [B + 1]
  const int64_t* indices = nullptr;   // [N, 2]
  int32_t* made = nullptr;            // [B + 1], the offsets
  int64_t id_begin = 0, num_ids = 0;  // in the arrays of the batch
  int64_t sample_begin = 0, num_samples = 0;
  // If this describes only a range of a table's samples: the number of samples
  // before it.
  int64_t samples_before = 0;
  // Read by LaunchPoolHandles.
  PiecesView rows;
  FloatType row_type = FloatType::kFloat32;
  int32_t value_floats = 0;         // of a row's value, and of a default row
  const float* defaults = nullptr;  // [R, value_floats], of row_type
  void* out = nullptr;              // [B, dim], of out_type
  FloatType out_type = FloatType::kFloat32;
  int32_t dim = 0;
  int32_t combiner = 0;  // ev::Combiner
  bool is_narrow = false;
  bool are_handles = false;  // the ids are handles, of 32 bits
  // Read by LaunchFindHandles. If num_defaults is not 0, the handle of an
  // unknown id is its default row, AbsentAs(first_default + floormod(id,
  // num_defaults)).
  int64_t first_default = 0, num_defaults = 0;
};

// Arrays are in device memory; unknown, unknown_keys and num_unknown may be in
// pinned memory.
struct StepLookup {
  const StepLookupTable* tables = nullptr;  // [T]
  int num_tables = 0;
  // [T + 1] each: find_tiles[t] is the first block of table t, pool_tiles[k]
  // that of table pool_order[k].
  const int32_t* find_tiles = nullptr;
  const int32_t* pool_tiles = nullptr;
  const int32_t* pool_order = nullptr;  // [T]
  // [N] handles of the ids of all tables.
  RowHandle* handles = nullptr;
  // [N] address of the row of each id; null for a row that is in the output
  // already (step_fetch.h). The array is null if no table's rows have places:
  // the pooling computes the addresses.
  const float** rows = nullptr;
  // [N] sample of each id in its table; null: not written.
  uint32_t* samples = nullptr;
  // [B] multiplier of each sample's gradient; null: not written.
  float* factors = nullptr;
  uint32_t* unknown = nullptr;      // [N] positions of unknown ids, any order
  int64_t* unknown_keys = nullptr;  // [N] their keys; null: not written
  uint32_t* num_unknown = nullptr;  // must start as zero
  uint32_t* found = nullptr;        // [T] SampleBits, must start as zero
};

// Ids, or samples, per block.
constexpr int64_t kFindTile = 256;
constexpr int64_t kPoolTile = 256;

// For the tables with 'made': checks the samples and computes their offsets.
// The offsets are valid unless found[t] has kNotInOrder. sample_tiles [T + 1]:
// first block of each table. A table with 'made' has blocks for max(N, B) + 1
// threads if it is the first with its samples; others have none. blocks:
// sample_tiles[T]. Launches one kernel.
Status LaunchFindSamples(const StepLookup& lookup, const int32_t* sample_tiles,
                         int blocks, StreamView stream);

// Writes handles and unknown. blocks: find_tiles[T]. Launches one kernel.
Status LaunchFindHandles(const StepLookup& lookup, int blocks,
                         StreamView stream);

// handles[positions[k]] = given[k] for k < count. Pointers are device memory.
// Launches one kernel.
Status LaunchSetHandles(const uint32_t* positions, const RowHandle* given,
                        int64_t count, RowHandle* handles, StreamView stream);

// Writes the outputs of tables pool_order[begin, end), all of one kind, and
// their samples and factors unless null. blocks: number of blocks from
// first_block on. Launches one kernel.
// REQUIRES: no handle is kNoRow. Outputs are aligned to four numbers, unless
// the kind is of the last class of ClassOfDim, which accesses single floats and
// takes any dim.
Status LaunchPoolHandles(const StepLookup& lookup, int kind, int begin, int end,
                         int first_block, int blocks, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_STEP_LOOKUP_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels between the lookup and the pooling of a step with tables whose rows
// have places (rows/gpu/row_places.h). They write the address of each id's row,
// and read the rows that are in host memory: each row once, in the order of
// addresses (gpu_step/place_order.h).
//
// If each sample is one id, rows in host memory are written to float outputs at
// once. Outputs in host memory then cross the link while other rows are read.
// Otherwise they are copied to a staging buffer in GPU memory, for the pooling.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_STEP_FETCH_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_STEP_FETCH_H_

#include <cstdint>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/gpu_step/place_order.h"
#include "kernels/engine/rows/gpu_step/step_lookup.h"

namespace ev {
namespace gpu {

// Maximum number of bytes of staged rows of a step. The pooling reads further
// rows in host memory, as often as their ids occur.
constexpr int64_t kMaxStagedBytes = int64_t{256} << 20;

struct StepFetch {
  PlaceOrder order;
  // Ids [first_id, first_id + num_ids) of the step.
  int64_t first_id = 0, num_ids = 0;
  // [num_staged, stride], aligned to 16 bytes, by the position of a row's first
  // id after the sort.
  float* staged = nullptr;
  int64_t num_staged = 0;
  int64_t stride = 0;  // a multiple of 4, at least every dim
};

// Writes lookup.rows and counts the rows read, by where they are. blocks:
// find_tiles[T]. Unless keys is null, [num_ids], writes a sort key and the
// position of each id for LaunchFetch. Launches one kernel.
Status LaunchLocate(const StepLookup& lookup, int blocks,
                    const StepFetch& fetch, uint32_t* keys, uint32_t* positions,
                    StreamView stream);

// Reads the rows. Writes lookup.rows of their ids: the address of a staged row,
// or null if the row was written to the output. keys, positions: the result of
// LaunchLocate, sorted. Launches one kernel.
Status LaunchFetch(const StepLookup& lookup, const StepFetch& fetch,
                   const uint32_t* keys, const uint32_t* positions,
                   StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_STEP_FETCH_H_

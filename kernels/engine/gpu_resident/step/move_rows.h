// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows follow their keys when a table grows.

#ifndef KERNELS_ENGINE_GPU_RESIDENT_STEP_MOVE_ROWS_H_
#define KERNELS_ENGINE_GPU_RESIDENT_STEP_MOVE_ROWS_H_

#include <cstdint>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/gpu_resident/table/table_set.h"

namespace ev {
namespace gpu {

// Copies the row of each key in growth's new slots from where the key was. Slot
// s has its row at rows + s * stride floats; 4 divides the stride, rows is
// 16-byte aligned. view: the table's, device memory. One launch; a key's slot
// and a row read and written.
Status LaunchMoveRows(const TableView* view, const Growth& growth, float* rows,
                      int64_t stride, int num_processors, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_RESIDENT_STEP_MOVE_ROWS_H_

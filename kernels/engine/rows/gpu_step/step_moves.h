// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// After an update, or after lookups without updates, rows that are used often
// move to GPU memory (rows/gpu/row_places.h).

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_STEP_MOVES_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_STEP_MOVES_H_

#include <memory>

#include "kernels/engine/base/gpu/device_event.h"
#include "kernels/engine/base/gpu/in_flight_events.h"
#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/rows/gpu/gpu_rows.h"
#include "kernels/engine/rows/gpu_step/step_layout.h"
#include "kernels/engine/rows/gpu_step/step_work.h"

namespace ev {
namespace gpu {

// Enqueues moves of rows of these tables, if they can move now, and adds their
// event to those of the rows. Returns the event; null if nothing moves.
// numbers: the tables' numbers in the step. followed: as in FollowAll.
// REQUIRES: the event of the step's own work was added, and the step holds no
// RowPlaces::Use of them.
std::shared_ptr<DeviceEvent> MoveRows(
    const StepLayout& layout, const StepWork& work, Span<const int> numbers,
    Span<GpuRows* const> rows, StreamView stream, InFlightEvents* followed);
// The same for the step's tables that are looked up without updates.
void MoveAfterLookups(const StepLayout& layout, StepWork* work);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_STEP_MOVES_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Puts a step's work in order with other work on the same rows, without
// waiting: writes queued new rows and keys on the step's stream, and makes the
// stream wait for earlier work.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_STEP_NEW_ROWS_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_STEP_NEW_ROWS_H_

#include <vector>

#include "kernels/engine/base/gpu/device_event.h"
#include "kernels/engine/base/gpu/in_flight_events.h"
#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/gpu/gpu_rows.h"
#include "kernels/engine/rows/gpu_step/step_work.h"

namespace ev {
namespace gpu {

// Writes the queued new rows and keys of these tables, on the stream. 'work'
// keeps the memory.
Status WriteNew(std::vector<GpuRows*> all, StreamView stream, StepWork* work);
// Makes later work of the stream wait for 'events'. Skips events in 'followed',
// which the stream already waits for, and adds the others to it.
Status FollowAll(const InFlightEvents& events, StreamView stream,
                 InFlightEvents* followed);
// The same for all work in flight on the rows.
Status FollowRows(const std::vector<GpuRows*>& all, StreamView stream,
                  InFlightEvents* followed);
// Makes later work of the stream wait for the last key insertions.
Status FollowKeys(const std::vector<GpuRows*>& all, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_STEP_NEW_ROWS_H_

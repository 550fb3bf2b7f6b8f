// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Adds an update to the pending counters of its tables
// (rows/gpu/row_counters.h).

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_STEP_COUNTERS_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_STEP_COUNTERS_H_

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/gpu_step/step_plan.cuh"

namespace ev {
namespace gpu {

// Enqueues one kernel. REQUIRES: the stream's work so far includes, or waits
// for, the plan's grouping and all earlier updates of the same rows.
Status LaunchCounters(const StepPlan& plan, int num_processors,
                      StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_STEP_COUNTERS_H_

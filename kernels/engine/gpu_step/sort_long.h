// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The lists of a step's long keys, sorted.

#ifndef KERNELS_ENGINE_GPU_STEP_SORT_LONG_H_
#define KERNELS_ENGINE_GPU_STEP_SORT_LONG_H_

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

struct StepPlan;

// Fills the long keys' parts of sorted: what order has there, ascending. One
// launch.
Status LaunchSortLong(const StepPlan& plan, int num_processors,
                      StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_STEP_SORT_LONG_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Sorts the occurrences of the keys that occur more than kSmallCount times.

#ifndef KERNELS_ENGINE_GPU_STEP_SORT_LONG_H_
#define KERNELS_ENGINE_GPU_STEP_SORT_LONG_H_

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

struct StepPlan;

// For each key in plan.longs, writes its occurrences in 'order' to 'sorted', in
// ascending order. Launches one kernel.
Status LaunchSortLong(const StepPlan& plan, int num_processors,
                      StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_STEP_SORT_LONG_H_

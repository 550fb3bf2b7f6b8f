// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Groups a batch's occurrences by key on the device, and lists the distinct
// keys by their number of occurrences.

#ifndef KERNELS_ENGINE_GPU_STEP_GROUP_H_
#define KERNELS_ENGINE_GPU_STEP_GROUP_H_

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

struct StepPlan;

// Fills the plan's lists of keys: small, longs and huge; 'order' for the keys
// in longs, 'sorted' for the keys in small. num_tiles: blocks of kScatterTile
// ids; no block spans two tables. Launches four kernels.
// REQUIRES: plan.rows is filled; counts and bin_counts are zero.
Status LaunchGroup(const StepPlan& plan, int num_tiles, int num_bins,
                   int num_processors, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_STEP_GROUP_H_

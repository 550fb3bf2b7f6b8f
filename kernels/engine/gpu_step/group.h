// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A batch's occurrences grouped by key on the device, and lists of the keys to
// work from.

#ifndef KERNELS_ENGINE_GPU_STEP_GROUP_H_
#define KERNELS_ENGINE_GPU_STEP_GROUP_H_

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

struct StepPlan;

// Fills the lists small, longs and huge, order for the long keys and
// sorted for the others. tiles: blocks of kScatterTile ids, none across tables.
// REQUIRES: rows is filled; counts and bin_counts are zero. Four launches.
Status LaunchGroup(const StepPlan& plan, int num_tiles, int num_bins,
                   int num_processors, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_STEP_GROUP_H_

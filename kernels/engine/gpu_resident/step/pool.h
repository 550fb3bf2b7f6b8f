// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Finding and pooling on the device, straight from the tables' rows.

#ifndef KERNELS_ENGINE_GPU_RESIDENT_STEP_POOL_H_
#define KERNELS_ENGINE_GPU_RESIDENT_STEP_POOL_H_

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

struct StepPlan;

// Samples of one block.
int PoolTile();

// Fills rows and, with training, absent. num_blocks: of kStepBlock ids, none
// across tables. REQUIRES: counts->absent zero. One launch; not needed when
// every sample has one id: LaunchPool does it then.
Status LaunchFindRows(const StepPlan& plan, int num_blocks, bool training,
                      StreamView stream);

// Pools the samples of the tables pool_order[begin, end), all of one class:
// pooled[table's pooled_begin + sample * dim ...]. With training, also fills
// samples and factors. One launch.
Status LaunchPool(const StepPlan& plan, int dim_class, int begin, int end,
                  int first_block, int num_blocks, bool training, float* pooled,
                  StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_RESIDENT_STEP_POOL_H_

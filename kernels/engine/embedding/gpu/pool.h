// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Pooling on the device, straight from the tables' rows, and the order of each
// key's occurrences, which the gradient's sums follow.

#ifndef KERNELS_ENGINE_EMBEDDING_GPU_POOL_H_
#define KERNELS_ENGINE_EMBEDDING_GPU_POOL_H_

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

struct StepPlan;

// Samples of one block.
int PoolTile();

// Pools the samples of the tables pool_order[begin, end), all of one class:
// pooled[table's pooled_begin + sample * dim ...]. With training, also fills
// samples, factors and order. One launch.
Status LaunchPool(const StepPlan& plan, int dim_class, int begin, int end,
                  int first_block, int num_blocks, bool training, float* pooled,
                  StreamView stream);

// Fills sorted: the occurrences of long keys in ascending order. One launch.
Status LaunchSortLong(const StepPlan& plan, int num_processors,
                      StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_GPU_POOL_H_

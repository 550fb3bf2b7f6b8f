// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Sums the gradients of pooled samples per distinct key, and applies each sum
// to the key's row, on the device.

#ifndef KERNELS_ENGINE_GPU_STEP_UPDATE_H_
#define KERNELS_ENGINE_GPU_STEP_UPDATE_H_

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

struct StepPlan;

// Applies 'rule' (one of rule_list.h) to the rows of the keys of one dim class.
// A key's gradient is the sum over its occurrences, in batch order, of the
// gradient of the occurrence's sample times the sample's factor. grads: laid
// out like the pooled output.
//
// Launches two kernels. On 'stream': keys of at most kSmallCount occurrences.
// On 'hot_stream', which may run at the same time: keys of at most kWarpSort
// occurrences, which LaunchSortLong must have sorted.
//
// update_*.cu instantiate this for every rule of rule_list.h; a rule without an
// instantiation does not link.
template <typename Rule>
Status LaunchUpdate(const StepPlan& plan, int dim_class, const float* grads,
                    const Rule& rule, int num_processors, StreamView stream,
                    StreamView hot_stream);

// The same for keys of more than kWarpSort occurrences, of all dim classes.
// max_dim: the largest dim of all tables. Launches one kernel.
template <typename Rule>
Status LaunchHuge(const StepPlan& plan, int max_dim, const float* grads,
                  const Rule& rule, int num_processors, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_STEP_UPDATE_H_

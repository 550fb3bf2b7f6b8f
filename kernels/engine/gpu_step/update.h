// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The gradient of pooling summed per distinct key and applied to its row, on
// the device.

#ifndef KERNELS_ENGINE_GPU_STEP_UPDATE_H_
#define KERNELS_ENGINE_GPU_STEP_UPDATE_H_

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

struct StepPlan;

// Applies rule (one of rule_list.h) to the rows of a class's keys. A key's
// gradient is the sum over its occurrences, in their order, of its sample's
// gradient times factor and weight. grads: laid out like the pooled rows. Two
// launches: keys of few occurrences on stream; keys of up to kWarpSort
// occurrences, whose lists must be sorted, on hot_stream, which may run beside
// it. update_*.cu instantiate it for every rule of rule_list.h; a rule without
// an instantiation does not link.
template <typename Rule>
Status LaunchUpdate(const StepPlan& plan, int dim_class, const float* grads,
                    const Rule& rule, int num_processors, StreamView stream,
                    StreamView hot_stream);

// The same for keys of more occurrences, of all classes. max_dim: of all
// tables. One launch.
template <typename Rule>
Status LaunchHuge(const StepPlan& plan, int max_dim, const float* grads,
                  const Rule& rule, int num_processors, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_STEP_UPDATE_H_

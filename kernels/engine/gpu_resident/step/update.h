// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The gradient of pooling summed per distinct key and applied to its row, on
// the device.

#ifndef KERNELS_ENGINE_GPU_RESIDENT_STEP_UPDATE_H_
#define KERNELS_ENGINE_GPU_RESIDENT_STEP_UPDATE_H_

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

struct StepPlan;

// Applies rule (one of rule_list.h) to the rows of a class's keys. A key's
// gradient is the sum over its occurrences, in their order, in chunks of kChunk
// when there are more, of its sample's gradient times factor and weight. grads:
// as pooled. A fresh row starts from its default row and the initial slots.
// Two launches: keys of few occurrences on stream; chunks of the others, whose
// lists must be sorted before, on hot_stream, which may run beside it.
// Instantiated in update_*.cu.
template <typename Rule>
Status LaunchUpdate(const StepPlan& plan, int dim_class, const float* grads,
                    const Rule& rule, int num_processors, StreamView stream,
                    StreamView hot_stream);

// Adds up the chunks of keys that have several, of all classes, and updates
// their rows. After all hot_streams' work. One launch.
template <typename Rule>
Status LaunchFinish(const StepPlan& plan, const Rule& rule, int num_processors,
                    StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_RESIDENT_STEP_UPDATE_H_

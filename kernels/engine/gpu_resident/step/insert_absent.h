// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Inserting the keys of a step that have no row yet.

#ifndef KERNELS_ENGINE_GPU_RESIDENT_STEP_INSERT_ABSENT_H_
#define KERNELS_ENGINE_GPU_RESIDENT_STEP_INSERT_ABSENT_H_

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

struct DeviceTables;
struct StepPlan;

// Gives the ids in absent a row in their tables; one occurrence of a new key is
// marked with kFreshRow. An id that finds no room stays at kNoRow and is
// counted as rejected. One launch.
Status LaunchInsertAbsent(const StepPlan& plan, const DeviceTables& tables,
                          int num_processors, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_RESIDENT_STEP_INSERT_ABSENT_H_

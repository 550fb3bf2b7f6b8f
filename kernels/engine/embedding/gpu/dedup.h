// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Distinct keys of a batch on the device, and lists of them to work from.

#ifndef KERNELS_ENGINE_EMBEDDING_GPU_DEDUP_H_
#define KERNELS_ENGINE_EMBEDDING_GPU_DEDUP_H_

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

struct StepPlan;
struct TableView;

// Fills heads and duplicates. num_blocks: blocks of kStepBlock ids, none across
// tables. REQUIRES: scratch all ones, duplicates zero. One launch.
Status LaunchDedup(const StepPlan& plan, int num_blocks, StreamView stream);

// Finds each distinct key in its table; fills the records and the lists small,
// longs, chunks, huge and absent; returns duplicates to zero. num_blocks:
// blocks of kListTile ids. REQUIRES: counts zero. One launch.
Status LaunchFindAndList(const StepPlan& plan, const TableView* views,
                         int num_blocks, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_GPU_DEDUP_H_

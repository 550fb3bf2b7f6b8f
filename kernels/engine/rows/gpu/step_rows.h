// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The rows that an update changes, and how often each one's key occurs, on
// their way to CPU memory: of tables that note it there (GpuStepUpdate::
// notes_rows).
//
// MEMORY: a lane of 12 bytes pinned per id of those tables.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_ROWS_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_ROWS_H_

#include <cstdint>
#include <memory>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/gpu/work_lane.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/gpu_step/step_plan.cuh"
#include "kernels/engine/rows/gpu_step.h"

namespace ev {
namespace gpu {

class StepRows : public GpuStepNotes {
 public:
  // Of tables with so many ids together, at least 1. The device is current.
  // ResourceExhausted.
  static Status Make(int device, int64_t num_ids,
                     std::unique_ptr<StepRows>* rows);
  ~StepRows() override;

  // Begins, behind what the stream was given so far: the plan's grouping. Once
  // for a grouping.
  Status Launch(const StepPlan& plan, int num_processors, StreamView stream);
  // What the stream is given from now on comes after it, so that the plan may
  // go.
  Status Before(StreamView stream) const;
  Status Wait(GpuStepRows* rows) override;

 private:
  explicit StepRows(int device) : device_(device) {}

  const int device_;
  bool is_done_ = false;
  int64_t most_ = 0;
  uint32_t* count_ = nullptr;   // [1], and so on, pinned
  int32_t* numbers_ = nullptr;  // [most]
  RowHandle* rows_ = nullptr;   // [most]
  uint32_t* counts_ = nullptr;  // [most]
  std::unique_ptr<WorkLane> lane_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_ROWS_H_

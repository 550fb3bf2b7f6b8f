// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepRows: copies the rows that an update changes, and their keys' occurrence
// counts, to host memory. It does so for tables whose metadata is in host
// memory (GpuStepUpdate::lists_rows).
//
// MEMORY: a context with 12 bytes of pinned memory per id of those tables.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_STEP_ROWS_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_STEP_ROWS_H_

#include <cstdint>
#include <memory>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/gpu/work/work_context.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/gpu_step/step_plan.cuh"
#include "kernels/engine/rows/gpu_step.h"

namespace ev {
namespace gpu {

class StepRows : public GpuMetaUpdates {
 public:
  // num_ids: sum over all tables, at least 1. REQUIRES: the device is
  // current. ResourceExhausted: not enough memory.
  static Status Make(int device, int64_t num_ids,
                     std::unique_ptr<StepRows>* rows);
  ~StepRows() override;

  // Enqueues the copy after the stream's work so far, which must include the
  // plan's grouping. Call once per grouping.
  Status Launch(const StepPlan& plan, int num_processors, StreamView stream);
  // Makes later work of the stream wait for the copy. The plan may be destroyed
  // after that.
  Status Before(StreamView stream) const;
  Status Wait(GpuStepRows* rows) override;

 private:
  explicit StepRows(int device) : device_(device) {}

  const int device_;
  bool is_done_ = false;
  int64_t most_ = 0;
  uint32_t* count_ = nullptr;   // [1]; pinned, as are the next three
  int32_t* numbers_ = nullptr;  // [most]
  RowHandle* rows_ = nullptr;   // [most]
  uint32_t* counts_ = nullptr;  // [most]
  std::unique_ptr<WorkContext> context_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_STEP_ROWS_H_

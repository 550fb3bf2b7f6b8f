// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepPool: pools the rows that a step has found, and takes outputs to host
// memory.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_STEP_POOL_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_STEP_POOL_H_

#include <atomic>

#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/gpu_step/step_description.h"
#include "kernels/engine/rows/gpu_step/step_layout.h"
#include "kernels/engine/rows/gpu_step/step_work.h"

namespace ev {
namespace gpu {

class StepPool {
 public:
  // All outlive this object.
  StepPool(const StepLayout* layout, StepWork* work,
           const StepDescription* description)
      : layout_(layout), work_(work), description_(description) {}
  StepPool(const StepPool&) = delete;
  StepPool& operator=(const StepPool&) = delete;

  // Enqueues the pooling of a wave's tables. launches: from StepFind::Launch,
  // which has described the pooling.
  Status LaunchWave(const StepLayout::Wave& wave, const StepLaunches& launches);
  // Enqueues the pooling of all tables, unless LaunchWave has done so for all
  // waves, and records the end of the work. Later work of the caller's stream
  // waits for it. InvalidArgument: an output is in another GPU's memory.
  Status Run();
  // GpuStep::TakeOutput.
  Status TakeOutput(int t);
  // Waits for outputs in host memory that were not taken. Call at the end of
  // the step.
  void Finish();

 private:
  // Describes and pools tables of which some have ids in GPU memory.
  Status LaunchAll();
  // REQUIRES: the stream waits for all work on the rows and the outputs.
  Status Launch(int begin, int end, const StepLaunches& launches);
  // Writes the addresses of the rows of tables [begin, end) and reads rows in
  // host memory (step_fetch.h).
  Status LocateRows(int begin, int end, const StepLaunches& launches);
  // Copies outputs of tables [begin, end) to the host.
  Status BringOutputs(int begin, int end);

  const StepLayout* const layout_;
  StepWork* const work_;
  const StepDescription* const description_;
  bool writes_outputs_ = false;  // some outputs may be being written
  bool is_launched_ = false;     // the pooling of all tables is enqueued
  std::atomic<bool> are_outputs_taken_{false};
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_STEP_POOL_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A step's occurrences grouped by row, with the rows in lists to update them
// from (gpu_step/step_plan.cuh). No gradient is needed for that, so that it
// goes on beside what makes them.
//
// MEMORY: a lane of 40 bytes per id on the device.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_GROUPS_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_GROUPS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/engine/base/gpu/side_stream.h"
#include "kernels/engine/base/gpu/work_lane.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/gpu_step/step_plan.cuh"

namespace ev {
namespace gpu {

class StepGroups {
 public:
  // What is in device memory before the grouping.
  struct Source {
    const RowHandle* names = nullptr;   // of the ids; kNoRow: passed over
    const uint32_t* samples = nullptr;  // of the ids; null: each one id
    const float* factors = nullptr;     // of the samples; null: all 1
  };

  // numbers: of the tables in their step. tables: which ids and samples each
  // has, its dim, class and combiner. ResourceExhausted.
  static Status Make(int device, std::vector<int> numbers,
                     std::vector<StepTable> tables,
                     std::unique_ptr<StepGroups>* groups);
  ~StepGroups();

  // Of these tables, in the same classes?
  bool AreOf(const std::vector<int>& numbers,
             const std::vector<StepTable>& tables) const;

  // Begins on the lane's stream, and on the side stream with the sorting of
  // long keys.
  Status Launch(const Source& source);
  // The tables with their rows and gradients, as the update's kernels read
  // them. After Launch.
  Status Describe(const std::vector<StepTable>& tables);
  // What the other lane is given from now on comes after the grouping, which
  // reads what is there. Before the groups go without an update.
  Status End(WorkLane* other);

  const StepPlan& plan() const { return plan_; }
  int max_dim() const { return max_dim_; }
  int num_processors() const { return num_processors_; }
  WorkLane* lane() const { return lane_.get(); }
  SideStream* side() const { return side_.get(); }
  // When the lane's stream comes after the side stream: nothing is left here.
  std::unique_ptr<WorkLane> TakeLane();

 private:
  explicit StepGroups(int device) : device_(device) {}
  Status Create();
  // Sends them, to be at 'at', and what has been put behind them up to 'end'.
  Status SendTables(size_t at, size_t end);

  const int device_;
  std::vector<int> numbers_;
  std::vector<StepTable> tables_;
  std::vector<int32_t> tiles_;  // scatter_tiles, then bins
  StepPlan plan_ = {};
  int max_dim_ = 0, num_processors_ = 0;
  int num_tiles_ = 0, num_bins_ = 0;
  size_t grouped_at_ = 0, updated_at_ = 0, tiles_at_ = 0;
  size_t zero_bytes_ = 0;
  std::unique_ptr<WorkLane> lane_;
  std::unique_ptr<SideStream> side_;
  bool has_failed_ = false;  // nothing is known of what is under way
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_GROUPS_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepGroups: the occurrences of a step's ids grouped by row, with lists of the
// rows for the update (gpu_step/step_plan.cuh). Grouping needs no gradients, so
// it can run while they are computed.
//
// MEMORY: a context with 40 bytes of device memory per id; 16 more, and the
// memory of a sort, if a table has rows in host memory.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_STEP_GROUPS_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_STEP_GROUPS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/engine/base/gpu/side_stream.h"
#include "kernels/engine/base/gpu/work/work_context.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/gpu_step/place_sort.h"
#include "kernels/engine/gpu_step/step_plan.cuh"

namespace ev {
namespace gpu {

class StepGroups {
 public:
  // Inputs of the grouping, in device memory.
  struct Source {
    const RowHandle* handles = nullptr;  // row of each id; kNoRow: skipped
    const uint32_t* samples = nullptr;   // sample of each id; null: one id each
    const float* factors = nullptr;      // factor of each sample; null: all 1
  };

  // numbers: each table's number in the step. tables: the fields for ids,
  // samples, dim, class and combiner must be set. ResourceExhausted: not enough
  // memory.
  static Status Make(int device, std::vector<int> numbers,
                     std::vector<StepTable> tables,
                     std::unique_ptr<StepGroups>* groups);
  ~StepGroups();

  // Returns whether these groups are of exactly these tables, in the same dim
  // classes.
  bool AreOf(const std::vector<int>& numbers,
             const std::vector<StepTable>& tables) const;

  // Enqueues the grouping on the context's stream, and the sorting of long
  // keys' occurrences on the side stream.
  Status Launch(const Source& source);
  // Uploads the tables again, now with the rows and gradients that the update's
  // kernels read. Call after Launch.
  Status Describe(const std::vector<StepTable>& tables);
  // Enqueues the sort of the small keys of classes with rows in host memory, so
  // that the update visits them in the order of their places. num_places: as
  // in PlaceOrder. Call after Describe.
  Status OrderByPlace(int64_t num_places);
  // Makes later work of context 'other' wait for the grouping, which reads the
  // other context's memory. Call it before the groups are destroyed without an
  // update.
  Status End(WorkContext* other);

  const StepPlan& plan() const { return plan_; }
  int max_dim() const { return max_dim_; }
  // Whether a table has enough ids for a key of LaunchHuge.
  bool may_have_huge() const { return may_have_huge_; }
  int num_processors() const { return num_processors_; }
  WorkContext* context() const { return context_.get(); }
  SideStream* side() const { return side_.get(); }
  // Gives the context away. REQUIRES: the context's stream waits for the side
  // stream, so no other work of the groups is in flight.
  std::unique_ptr<WorkContext> TakeContext();

 private:
  explicit StepGroups(int device) : device_(device) {}
  Status Create();
  // Copies the tables to offset 'at' of the context's memory, together with the
  // data from there to 'end'.
  Status SendTables(size_t at, size_t end);

  const int device_;
  std::vector<int> numbers_;
  std::vector<StepTable> tables_;
  std::vector<int32_t> tiles_;  // scatter_tiles, followed by bins
  StepPlan plan_ = {};
  int max_dim_ = 0, num_processors_ = 0;
  bool may_have_huge_ = false;
  // Per class: a table has rows in host memory. Any: sort_ is not null.
  bool has_host_rows_[kClasses] = {};
  std::unique_ptr<PlaceSort> sort_;
  int num_tiles_ = 0, num_bins_ = 0;
  size_t grouped_at_ = 0, updated_at_ = 0, tiles_at_ = 0;
  size_t zero_bytes_ = 0;
  std::unique_ptr<WorkContext> context_;
  std::unique_ptr<SideStream> side_;
  bool has_failed_ = false;  // unknown work may be in flight
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_STEP_GROUPS_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepUpdate: groups the occurrences of a step's ids by row (step_groups.h) and
// updates the rows with the kernels of gpu_step/.
//
// Grouping needs no gradients, so it overlaps with their computation. It is
// launched right after the pooling if the last update covered all tables of its
// step and every key had a row, since the next update will probably too.
// Otherwise Run launches it.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_STEP_UPDATE_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_STEP_UPDATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/gpu/device_event.h"
#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/gpu_step/step_plan.cuh"
#include "kernels/engine/rows/gpu/gpu_gradients.h"
#include "kernels/engine/rows/gpu_step.h"
#include "kernels/engine/rows/gpu_step/step_find.h"
#include "kernels/engine/rows/gpu_step/step_groups.h"
#include "kernels/engine/rows/gpu_step/step_ids.h"
#include "kernels/engine/rows/gpu_step/step_layout.h"
#include "kernels/engine/rows/gpu_step/step_rows.h"
#include "kernels/engine/rows/gpu_step/step_work.h"

namespace ev {
namespace gpu {

// The calls must not be concurrent, except Prepare.
class StepUpdate {
 public:
  // One call of GpuStep::Update.
  struct Call {
    bool changes_handles() const {
      return !new_handles.empty() || have_handles;
    }

    // Recorded before the gradients are waited for; null if all were copied
    // from host memory.
    std::shared_ptr<DeviceEvent> made;
    // Sorted by the tables' order in the step; callers pass them in any order.
    std::vector<GpuStepUpdate> updates;
    // One entry per update.
    std::vector<int> numbers;
    std::vector<StepTable> tables;
    std::vector<GpuRows*> rows;
    std::vector<std::vector<RowHandle>> rows_only;
    // Numbers in 'updates' of those with new handles, and the gradients of
    // those that have put some.
    std::vector<size_t> new_handles;
    std::vector<GpuGradients*> put_grads;
    int64_t num_listed = 0;  // ids of tables that list their rows
    bool have_handles = false, have_counters = false;
    std::unique_ptr<StepGroups> groups;
    // Destroyed before 'groups': its destructor waits for work that reads them.
    std::unique_ptr<StepRows> listed;
  };

  // All outlive this object.
  StepUpdate(const StepLayout* layout, StepWork* work, const StepIds* ids,
             const StepFind* find)
      : layout_(layout), work_(work), ids_(ids), find_(find) {}
  StepUpdate(const StepUpdate&) = delete;
  StepUpdate& operator=(const StepUpdate&) = delete;

  // Call after the pooling. Returns true if an update of all tables is expected
  // (GpuRows::Hints). Clears the tables' flags, so a second call returns false.
  bool ExpectsUpdate() const;
  // From here on GroupEarly has work that is not done.
  void AllowGroups() { groups_early_ = true; }
  bool groups_early() const { return groups_early_; }
  // Groups occurrences for the expected update, unless there is not enough
  // memory or the update has already been called. Does not throw.
  void GroupEarly();

  // Checks the updates, and allocates what they need. Thread-safe.
  Status Prepare(Span<const GpuStepUpdate> updates, const DeviceStream* stream,
                 Call* call) const;
  // Enqueues the update, as GpuStep::Update.
  Status Run(const std::string& rule, Span<const float> hyper,
             const DeviceStream* stream, Call* call);
  // Makes later work of the step's context wait for groups that were not used.
  // Call at the end of the step.
  void Finish();

 private:
  Status AddUpdate(size_t k, Call* call) const;
  // Takes the groups that were launched early, and sets *is_grouped, or makes
  // groups that are not launched yet.
  Status TakeGroups(Call* call, bool* is_grouped);
  void LaunchGroupsEarly();
  Status LaunchGroups(StepGroups* groups) const;
  // Overwrites the handles of unknown ids with the handles that their keys have
  // got since the lookup.
  Status SetHandles(const Call& call, StreamView stream);
  // Overwrites the handles of all ids of the updates that have handles.
  Status SetGivenHandles(const Call& call, StreamView stream);
  // Enqueues the part of the update that needs no gradients. Sets
  // *has_counters before it enqueues work that changes pending counters.
  Status LaunchPlan(bool is_grouped, Call* call, InFlightEvents* followed,
                    bool* has_counters);

  const StepLayout* const layout_;
  StepWork* const work_;
  const StepIds* const ids_;
  const StepFind* const find_;
  bool groups_early_ = false;
  // Groups launched right after the pooling, for the update; may be null.
  std::unique_ptr<StepGroups> groups_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_STEP_UPDATE_H_

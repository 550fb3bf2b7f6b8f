// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepFind: looks up a step's ids in the key tables. The ids without a row,
// called unknown, are copied to the host when an update needs them.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_STEP_FIND_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_STEP_FIND_H_

#include <cstdint>
#include <mutex>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/gpu_step.h"
#include "kernels/engine/rows/gpu_step/step_description.h"
#include "kernels/engine/rows/gpu_step/step_ids.h"
#include "kernels/engine/rows/gpu_step/step_layout.h"
#include "kernels/engine/rows/gpu_step/step_work.h"

namespace ev {
namespace gpu {

class StepFind {
 public:
  // The unknown ids of a table.
  struct Unknown {
    Span<const uint32_t> at;  // positions in the step, ascending
    // The ids at these positions; null: read them from the block of ids.
    const int64_t* ids = nullptr;
    // The distinct keys, the occurrences of each, and for each of the positions
    // the index of its key.
    std::vector<int64_t> keys;
    std::vector<int32_t> key_of, counts;
    bool is_settled = false;
  };

  // All outlive this object.
  StepFind(const StepLayout* layout, StepWork* work, StepIds* ids,
           const StepDescription* description);

  // Enqueues the lookup of a wave's tables, and sends their description, for
  // the pooling too if 'pools'. REQUIRES: all these tables have been started.
  Status Launch(const StepLayout::Wave& wave, bool pools,
                StepLaunches* launches);
  // Enqueues the copy of the number of unknown ids to the host. Call after
  // Launch of all waves.
  Status BringCounter();
  RowHandle* handles() const {
    return work_->OnDevice<RowHandle>(layout_->on_device.handles);
  }
  // Copies the handles of a table's ids, [N], to the host.
  Status BringHandles(int t, RowHandle* handles) const;

  // Waits for the lookup and copies the unknown ids to the host, once. Must not
  // be called concurrently.
  Status TakeUnknown();
  bool is_taken() const { return is_taken_; }
  // GpuStep::Settle. Call after TakeUnknown.
  Status Settle(int t, GpuStepUnknown* unknown);
  const Unknown& unknown(int t) const { return unknown_[t]; }

 private:
  // Locks the key tables of tables [begin, end), in the same order in all
  // steps. Kernels that read a key table must be enqueued under its lock.
  using KnownLocks = std::vector<std::unique_lock<std::mutex>>;
  KnownLocks LockKnown(int begin, int end) const;
  // Enqueues the check of samples in GPU memory.
  Status CheckSamples(const StepLaunches& launches);
  // Sets positions_ and ids_of_unknown_, and each table's range of them.
  Status Take();
  // Fills positions_, and ids_of_unknown_ if ids, [count], is not null.
  void PutInOrder(Span<const uint32_t> positions, const int64_t* ids);
  Status FindKeys(int t, Unknown* unknown) const;

  const StepLayout* const layout_;
  StepWork* const work_;
  StepIds* const ids_;
  const StepDescription* const description_;
  bool is_taken_ = false;
  Status taken_;  // the result of TakeUnknown
  // Positions of the unknown ids, ascending, and, unless all ids were put, the
  // ids.
  std::vector<uint32_t> positions_;
  std::vector<int64_t> ids_of_unknown_;
  std::vector<Unknown> unknown_;  // one per table
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_STEP_FIND_H_

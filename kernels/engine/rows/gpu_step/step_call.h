// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepCall: GpuStep on a GPU. It passes each call to the part of the step that
// does it. Data flows from one part to those below it:
//
//   StepLayout   the tables, and where their data lies
//   StepWork     the memory and the stream of the step's work
//   StepIds      copies ids and samples to the GPU
//   StepFind     looks up the ids in the key tables
//   StepPool     pools the rows
//   StepUpdate   groups occurrences by row, and updates the rows.
//
// Lookup and pooling are launched together, unless ids are in GPU memory, whose
// samples must be checked first. The tables of a step with many ids are split
// into waves, so that the GPU is not idle during the copy of ids. The ids of a
// wave are looked up, and its rows pooled, while the ids of the next wave are
// copied. wave_queue.h decides which thread launches a wave.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_STEP_CALL_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_STEP_CALL_H_

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "kernels/engine/rows/gpu/row_places.h"
#include "kernels/engine/rows/gpu_step.h"
#include "kernels/engine/rows/gpu_step/step_description.h"
#include "kernels/engine/rows/gpu_step/step_find.h"
#include "kernels/engine/rows/gpu_step/step_ids.h"
#include "kernels/engine/rows/gpu_step/step_layout.h"
#include "kernels/engine/rows/gpu_step/step_pool.h"
#include "kernels/engine/rows/gpu_step/step_update.h"
#include "kernels/engine/rows/gpu_step/step_work.h"
#include "kernels/engine/rows/gpu_step/wave_queue.h"

namespace ev {
namespace gpu {

class StepCall : public GpuStep, public std::enable_shared_from_this<StepCall> {
 public:
  // tables: all are GpuRows on this device. REQUIRES: the device is current.
  // ResourceExhausted: not enough memory. InvalidArgument: ids or samples are
  // in another GPU's memory.
  static Status Make(int device, Span<const GpuStepTable> tables,
                     const DeviceStream* stream,
                     std::shared_ptr<GpuStep>* step);
  // Waits for outputs in host memory that were not taken and, if Settle was not
  // called, until the GPU has read the caller's ids.
  ~StepCall() override;

  bool needs_put(int t) const override {
    return layout_.tables[t].where == StepLayout::IdsAre::kPut;
  }
  Status Put(int t, int64_t begin, Span<const int64_t> ids) override {
    return ids_.Put(t, begin, ids);
  }
  Status Put(int t, int64_t begin, Span<const int32_t> ids) override {
    return ids_.Put(t, begin, ids);
  }
  Status Start(int t, Span<const int32_t> offsets) override;
  Status Pool() override;
  Status TakeOutput(int t) override { return pool_.TakeOutput(t); }
  std::function<void()> TakeRest() override;
  Status Settle(int t, GpuStepUnknown* unknown) override;
  Status BringIds(int t, GpuStepIds* ids) override;
  bool CanUpdate(const std::string& rule,
                 Span<const int> slot_columns) const override;
  Status Update(const std::string& rule, Span<const float> hyper,
                Span<const GpuStepUpdate> updates, const DeviceStream* stream,
                std::unique_ptr<GpuMetaUpdates>* meta_updates) override;

 private:
  using Uses = std::list<RowPlaces::Use>;
  StepCall(int device, const DeviceStream* stream, StepLayout layout,
           Uses uses);
  // Enqueues the work of a wave whose tables have all been started.
  Status Launch(const StepLayout::Wave& wave);

  const StepLayout layout_;
  StepWork work_;
  StepIds ids_;
  const StepDescription description_;
  StepFind find_;
  StepPool pool_;
  StepUpdate update_;
  WaveQueue queue_;
  // Keep rows from moving until the pooling is enqueued, or the step fails.
  Uses uses_;
  std::mutex mu_;  // guards the unknown ids of find_, and update_
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_STEP_CALL_H_

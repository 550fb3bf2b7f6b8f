// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The tables of a pooled lookup that a GPU takes together (rows/gpu_step.h).
// For the files of this room only.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_STEP_LOOKUP_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_STEP_LOOKUP_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/rows/gpu_step.h"

namespace ev {

// A table is in it when its output is in the GPU's memory and its rows are all
// there. Without weights, with a combiner that adds, and once in the call; ids
// on the GPU are of the table's type. All such tables together are worth it
// (IsWorthAStep). There is none of a call with a table whose ids are on the GPU
// and that cannot be in it.
class StepLookup {
 public:
  StepLookup() {}
  StepLookup(const StepLookup&) = delete;
  StepLookup& operator=(const StepLookup&) = delete;

  // Begins a step, if there are tables for one and memory. REQUIRES the tables'
  // gates until it is destroyed. Throws std::bad_alloc.
  Status Start(Span<const PooledInput> inputs, Span<float* const> outputs);
  // The same of inputs whose samples are one id each: where those of each go.
  using Pieces = std::vector<GpuStepPiece>;
  Status Start(Span<const PooledInput> inputs, Span<const Pieces> pieces);

  bool Has(int t) const { return step_ != nullptr && number_[t] >= 0; }
  // For tables that it has.
  std::unique_ptr<DeviceDistinct> Distinct(int t) const {
    return step_->Distinct(number_[t]);
  }
  // handles [K]: as GpuStep::SetUnknownHandles. The last table's call begins
  // the pooling. By any thread.
  Status SetUnknown(int t, Span<const RowHandle> handles);
  // After that: has another thread do what can be done towards the update.
  void DoRestLater(Parallel* parallel) const;

 private:
  Status Start(Span<const PooledInput> inputs, Span<float* const> outputs,
               Span<const Pieces> pieces);

  std::shared_ptr<GpuStep> step_;
  std::vector<int> number_;  // of the call's tables in the step, or -1
  std::vector<float*> outputs_;
  const DeviceStream* stream_ = nullptr;
  std::atomic<int> left_{0};  // tables whose handles are not set
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_STEP_LOOKUP_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The tables of a lookup that a GPU looks up together, in a step
// (rows/gpu_step.h). For the files of this folder only.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_STEP_LOOKUP_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_STEP_LOOKUP_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/rows/gpu_step.h"

namespace ev {

// A table is in the step if all its rows are in GPU memory, it has no weights,
// its combiner adds, and it did not occur before in the call. If its ids are on
// the GPU, they must have the type of its keys. All outputs of a step are in
// GPU memory or all in host memory; the first table decides. There is no step
// if a table of the call has ids on the GPU and cannot be in it.
class StepLookup {
 public:
  StepLookup() {}
  StepLookup(const StepLookup&) = delete;
  StepLookup& operator=(const StepLookup&) = delete;

  // Begins a step, if there are tables for one. Without memory for it there is
  // none if outputs are in host memory, and ResourceExhausted if they are on a
  // device. REQUIRES: the tables' gates, until destruction. Throws
  // std::bad_alloc.
  Status Start(Span<const PooledInput> inputs, Span<float* const> outputs);
  // The same for inputs whose samples are one id each. pieces[t]: where the
  // rows of table t go.
  using Pieces = std::vector<GpuStepPiece>;
  Status Start(Span<const PooledInput> inputs, Span<const Pieces> pieces);

  bool Has(int t) const { return step_ != nullptr && number_[t] >= 0; }
  int64_t num_ids() const { return step_ == nullptr ? 0 : num_ids_; }
  // Returns the ids of table t. REQUIRES: Has(t).
  std::unique_ptr<DeviceDistinct> Distinct(int t) const {
    return step_->Distinct(number_[t]);
  }
  // Called for each table of the step after Wait of its ids; the last call
  // completes the pooling. Thread-safe.
  Status Waited();
  // Prepares the update as far as possible, on another thread. Called after all
  // tables were waited for.
  void DoRestLater(Parallel* parallel) const;
  // Waits for outputs in host memory.
  Status TakeOutputs(Parallel* parallel) const;

 private:
  Status Start(Span<const PooledInput> inputs, Span<float* const> outputs,
               Span<const Pieces> pieces);

  std::shared_ptr<GpuStep> step_;
  std::vector<int> number_;   // of the call's tables in the step, or -1
  int64_t num_ids_ = 0;       // of all tables of the step
  bool to_host_ = false;      // outputs are in host memory
  std::atomic<int> left_{0};  // tables that were not waited for
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_STEP_LOOKUP_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The tables of a lookup that a GPU looks up by their ids, in steps
// (rows/gpu_step.h). For the files of this folder only.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_STEP_LOOKUP_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_STEP_LOOKUP_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/lookup/lookup_plan.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/ids/batch_ids.h"
#include "kernels/engine/rows/gpu_step.h"

namespace ev {

// A table is in a step if the GPU accesses its rows, or some of them, it has no
// weights, and its combiner adds. If the GPU does not access all of them
// (GpuRowCompute::below), the caller checks that it has accessed those of the
// ids. If its ids are on the GPU, they must have the type of
// its keys. A step has each table once, and all its outputs are in GPU memory
// or all in host memory. So the k-th occurrence of a table in a call is in the
// k-th step for its memory; a step that is full sends it to the next. There is
// no step if a table of the call has ids on the GPU and cannot be in one.
class StepLookup {
 public:
  // on_cpu[t]: table t must not be in a step. Empty: none of them.
  explicit StepLookup(std::vector<bool> on_cpu = {})
      : on_cpu_(std::move(on_cpu)) {}
  StepLookup(const StepLookup&) = delete;
  StepLookup& operator=(const StepLookup&) = delete;

  // Begins the steps, if there are tables for them. Without memory there is no
  // step for outputs in host memory, and ResourceExhausted for those on a
  // device. REQUIRES: the inputs, and the table locks, until destruction.
  // Throws std::bad_alloc.
  Status Start(Span<const PooledInput> inputs,
               Span<const MutableFloats> outputs);
  // The same for inputs whose samples are one id each. pieces[t]: where the
  // rows of table t go.
  using Pieces = std::vector<GpuStepPiece>;
  Status Start(Span<const PooledInput> inputs, Span<const Pieces> pieces);

  bool Has(int t) const {
    return !at_.empty() && at_[t].step >= 0 &&
           steps_[at_[t].step].step != nullptr;
  }
  // The step of table t and the table's number in it. REQUIRES: Has(t).
  const std::shared_ptr<GpuStep>& step(int t) const {
    return steps_[at_[t].step].step;
  }
  int number(int t) const { return at_[t].number; }
  int64_t num_ids() const;  // of all steps

  // The tasks that copy ids and samples to the GPU, with negative items, for
  // PlanIds (ids/batch_ids.h). A task sets offsets and has_offsets of its
  // tables in the plan. 'plan' must outlive the tasks.
  void AddTasks(Samples samples, LookupPlan* plan, TaskList* tasks);
  Status DoTask(const Piece& piece);
  // Completes the pooling, after all tasks.
  Status Pool();

  // Prepares the updates as far as possible, on another thread. Call after
  // Pool.
  void DoRestLater(Parallel* parallel) const;
  // Waits for outputs in host memory.
  Status TakeOutputs(Parallel* parallel) const;

 private:
  struct Step {
    std::vector<int> tables;  // of the call, in the order of the step
    const DeviceStream* stream = nullptr;  // null: outputs are in host memory
    int64_t num_ids = 0;
    std::vector<GpuStepTable> given;  // until the step is started
    std::shared_ptr<GpuStep> step;    // null if there was no memory for it
  };
  // A table's step, or -1, and its number in it.
  struct Place {
    int step = -1, number = 0;
  };

  Status Start(Span<const PooledInput> inputs,
               Span<const MutableFloats> outputs, Span<const Pieces> pieces);
  // Adds table t to the first step with room for it, or to a new one.
  void Add(int t, MutableFloats output, const Pieces* pieces);
  int SamplesOf(const Step& step, const PooledInput& in) const;
  // Finds the samples of table t, for all tables of its step that share them.
  Status FindSamplesOf(int t);
  Status PutIds(int t, int64_t begin, int64_t end);
  // Subtracts 'count' from left_[t], and starts the table at 0.
  Status Done(int t, int64_t count);
  int num_tables() const { return static_cast<int>(inputs_.size()); }

  const std::vector<bool> on_cpu_;
  Span<const PooledInput> inputs_;
  std::vector<Step> steps_;
  std::vector<Place> at_;  // of each table
  // The first step that does not have the table's earlier occurrences.
  std::map<const EmbeddingTable*, int> next_step_;
  // Set by AddTasks.
  Samples samples_ = Samples::kAsGiven;
  LookupPlan* plan_ = nullptr;
  // Work left for each table before it can start: its samples (1) and the ids
  // to copy.
  std::vector<std::atomic<int64_t>> left_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_STEP_LOOKUP_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Finds the rows of tables whose ids a device deduplicates (device_distinct.h),
// in a pooled lookup. The device finds its known keys; the CPU finds the others
// and passes their handles to the device. A table goes on as soon as all of its
// keys have handles, while ids of other tables are still in flight. For the
// files of this folder only.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_DEVICE_LOOKUP_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_DEVICE_LOOKUP_H_

#include <atomic>
#include <functional>
#include <vector>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/lookup/lookup_plan.h"
#include "kernels/engine/embedding/lookup/step_lookup.h"
#include "kernels/engine/ids/distinct_queue.h"

namespace ev {

class DeviceLookup {
 public:
  // all_known(t) is called once for each started table, in some task, when the
  // device has a handle for each of the batch's keys. For tables of 'step', the
  // handles are passed to the step instead, and all_known is not called. Throws
  // std::bad_alloc.
  DeviceLookup(LookupPlan* plan, StepLookup* step,
               const std::function<Status(int t)>& all_known);

  // Returns whether table t is in the step.
  bool IsInStep(int t) const { return step_ != nullptr && step_->Has(t); }
  const StepLookup* step() const { return step_; }
  // The queue for PlanIds, which reports started tables to it.
  DistinctQueue* queue() { return &queue_; }
  // Takes the remaining tables and finds their keys. Called once all are
  // started, by the thread that runs the tasks.
  Status Finish(Parallel* parallel);

 private:
  // Finds the unknown keys of table t after its Wait and sets their handles, if
  // they are few; leaves many to Finish.
  Status Take(int t);
  // Passes the handles of table t's unknown keys to the device, when all are
  // found.
  Status SetUnknown(int t);

  LookupPlan* const plan_;
  StepLookup* const step_;
  const std::function<Status(int t)> all_known_;
  std::vector<std::atomic<int64_t>> to_find_;  // unknown keys left
  DistinctQueue queue_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_DEVICE_LOOKUP_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The part of a pooled lookup that finds the rows of tables whose ids a device
// deduplicates (device_distinct.h). Keys that the device knows are found there;
// the others are found here, and named. A table goes on as soon as all of its
// keys have names, while ids of others are still on their way. For the files of
// this room only.

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
  // all_known(t) is called once for each table that was started, in some task,
  // when the device knows what each of the batch's keys reads. Throws
  // std::bad_alloc.
  // step: those of its tables are told to it, and all_known is not called.
  DeviceLookup(LookupPlan* plan, StepLookup* step,
               const std::function<Status(int t)>& all_known);

  // Whether the step takes table t; the step.
  bool IsInStep(int t) const { return step_ != nullptr && step_->Has(t); }
  const StepLookup* step() const { return step_; }
  // For PlanIds, which tells it of tables whose devices were started.
  DistinctQueue* queue() { return &queue_; }
  // All that are left, when all were started. By the thread that shares out the
  // tasks.
  Status Finish(Parallel* parallel);

 private:
  // The keys of table t, which was waited for. Of few unknown ones the handles
  // are found and set, many are left for Finish.
  Status Take(int t);
  // Tells the device the handles of table t's unknown keys, when all are found.
  Status SetUnknown(int t);

  LookupPlan* const plan_;
  StepLookup* const step_;
  const std::function<Status(int t)> all_known_;
  std::vector<std::atomic<int64_t>> to_find_;  // unknown keys left
  DistinctQueue queue_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_DEVICE_LOOKUP_H_

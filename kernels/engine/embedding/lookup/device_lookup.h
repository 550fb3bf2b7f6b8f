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

namespace ev {

class DeviceLookup {
 public:
  // all_named(t) is called once for each table that was started, in some task,
  // when its keys have names. Throws std::bad_alloc.
  DeviceLookup(LookupPlan* plan, const std::function<Status(int t)>& all_named);

  // The device of table t has begun: its 'distinct' was started. By any thread.
  void Started(int t) { states_[t].store(kStarted, std::memory_order_release); }
  // Takes a table that a device is through with, if there is one; does not wait
  // for a device. By any thread.
  Status Advance();
  // All that are left, when all were started. By the thread that shares out the
  // tasks.
  Status Finish(Parallel* parallel);

 private:
  enum State { kNotStarted, kStarted, kTaken };
  // The keys of table t. Few unknown ones are found and named, many are left
  // for Finish.
  Status Take(int t);
  Status NameAll(int t);

  LookupPlan* const plan_;
  const std::function<Status(int t)> all_named_;
  std::vector<std::atomic<State>> states_;
  std::vector<std::atomic<int64_t>> to_find_;  // unknown keys left
  std::atomic<int> oldest_{0};  // all before it are taken, or have no device
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_DEVICE_LOOKUP_H_

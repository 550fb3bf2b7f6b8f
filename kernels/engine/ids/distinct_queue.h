// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Queue of one call's tables whose ids devices deduplicate (device_distinct.h).
// A table is taken as soon as its device has finished, while ids of other
// tables are still in flight.

#ifndef KERNELS_ENGINE_IDS_DISTINCT_QUEUE_H_
#define KERNELS_ENGINE_IDS_DISTINCT_QUEUE_H_

#include <atomic>
#include <functional>
#include <vector>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/ids/table_ids.h"

namespace ev {

class DistinctQueue {
 public:
  // take(t) is called once for each started table, on any thread, after Wait of
  // its 'distinct' has returned. The tables must outlive the queue. Throws
  // std::bad_alloc.
  DistinctQueue(std::vector<TableIds*> tables,
                const std::function<Status(int t)>& take);

  // Records that the 'distinct' of table t has been started. Thread-safe.
  void Started(int t) { states_[t].store(kStarted, std::memory_order_release); }
  // Takes one table that its device has finished, if any. Does not wait for a
  // device. Thread-safe.
  Status Advance();
  // Waits for the remaining tables and takes them. Called once all are started,
  // by the thread that runs the tasks.
  Status Finish(Parallel* parallel);

 private:
  enum State { kNotStarted, kStarted, kTaken };
  Status Take(int t);

  const std::vector<TableIds*> tables_;
  const std::function<Status(int t)> take_;
  std::vector<std::atomic<State>> states_;
  std::atomic<int> oldest_{0};  // tables before it are taken or have no device
};

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_DISTINCT_QUEUE_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The tables of one call whose ids devices deduplicate (device_distinct.h). A
// table is taken as soon as its device is through, while the ids of others are
// still on their way.

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
  // take(t) is called once for each table that was started, by some thread,
  // when its 'distinct' has been waited for. The tables outlive the queue.
  // Throws std::bad_alloc.
  DistinctQueue(std::vector<TableIds*> tables,
                const std::function<Status(int t)>& take);

  // The 'distinct' of table t was started. By any thread.
  void Started(int t) { states_[t].store(kStarted, std::memory_order_release); }
  // Takes a table that a device is through with, if there is one; does not wait
  // for a device. By any thread.
  Status Advance();
  // Waits for and takes the tables that are left, when all were started. By the
  // thread that shares out the tasks: alone those of a step with few unknown
  // ids, which are less work than waking other threads.
  Status Finish(Parallel* parallel);

 private:
  enum State { kNotStarted, kStarted, kTaken };
  Status Take(int t);

  const std::vector<TableIds*> tables_;
  const std::function<Status(int t)> take_;
  std::vector<std::atomic<State>> states_;
  std::atomic<int> oldest_{0};  // all before it are taken, or have no device
};

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_DISTINCT_QUEUE_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Finds the rows of a lookup's distinct keys and makes them readable by the
// CPU. For the files of this folder only.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_FIND_ROWS_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_FIND_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/engine/base/status.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/lookup/planned_table.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/rows/row_home.h"

namespace ev {

// Keeps rows addressable until it is destroyed. Thread-safe.
class RowHolds {
 public:
  void Add(std::unique_ptr<RowHold> hold) {
    std::lock_guard<std::mutex> lock(mu_);
    holds_.push_back(std::move(hold));
  }

 private:
  std::mutex mu_;
  std::vector<std::unique_ptr<RowHold>> holds_;
};

// A list of tasks that find distinct keys of several tables, at most
// kMostAtOnce keys each.
class FindTasks {
 public:
  FindTasks() : tasks_(kMostAtOnce) {}
  // keys_at_once: how many keys of this table one task takes, at most
  // kMostAtOnce.
  void Add(int t, int64_t num_keys, int64_t keys_at_once) {
    tasks_.Add(t, num_keys, std::max<int64_t>(1, kMostAtOnce / keys_at_once));
  }
  const TaskList& list() const { return tasks_; }

 private:
  static constexpr int64_t kMostAtOnce = 16384;
  TaskList tasks_;
};

// Sets the handles of distinct keys [begin, end).
void FindHandles(PlannedTable* planned, int64_t begin, int64_t end);

// Like FindHandles, and sets planned->rows for the CPU to read. If the lookup
// keeps rows (planned_table.h) they are copies, since the gradient may read
// them after the update. Otherwise they point into the home, or to copies in
// the home's type if it cannot hold that many rows. Errors name the table.
// Throws std::bad_alloc.
Status FindRows(PlannedTable* planned, int64_t begin, int64_t end,
                RowHolds* holds);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_FIND_ROWS_H_

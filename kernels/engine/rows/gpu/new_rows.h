// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// NewRows: the queue of rows and keys that a table has got since they were last
// written to GPU memory. A step takes the queue and writes it in its first
// kernels; other calls write it before they read or write rows.

#ifndef KERNELS_ENGINE_ROWS_GPU_NEW_ROWS_H_
#define KERNELS_ENGINE_ROWS_GPU_NEW_ROWS_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// Thread-safe.
class NewRows {
 public:
  struct Row {
    RowHandle handle;
    int64_t default_row;  // index of the values to start with
  };
  struct Key {
    int64_t key;
    RowHandle handle;
  };
  struct Queue {
    std::vector<Row> rows;
    std::vector<Key> keys;
    bool empty() const { return rows.empty() && keys.empty(); }
  };

  // Adds a row, and its key unless that is null. ResourceExhausted: no memory;
  // nothing is added then.
  Status Add(const int64_t* key, RowHandle handle, int64_t default_row);
  // False only if all rows and keys have been written.
  bool has_any() const { return has_any_.load(std::memory_order_acquire); }

  // Moves the queue out. Until the returned lock is released, other calls of
  // Take wait, and so do calls that must write new rows first; Add does not.
  // REQUIRES: *queue is empty. A thread that takes the queues of several tables
  // takes them in the order of the objects' addresses.
  std::unique_lock<std::mutex> Take(Queue* queue);
  // Reports that the taken queue was written. REQUIRES: the lock of Take is
  // held.
  void Done();
  // Puts a taken queue back that was not written. Throws std::bad_alloc.
  // REQUIRES: the lock of Take is held.
  void GiveBack(const Queue& queue);
  // Forgets the queue. REQUIRES: no queue is taken.
  void Clear();

 private:
  std::mutex writer_mu_;  // held from Take until its lock is released
  std::mutex mu_;
  Queue queue_;
  std::atomic<bool> has_any_{false};
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_NEW_ROWS_H_

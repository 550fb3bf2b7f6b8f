// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// NewRows: the queue of rows and keys that a table has got since they were last
// written to GPU memory. A step writes the queue in its first kernels; other
// calls write it before they read or write rows. A row is written before its
// key, since a lookup on another stream reads the row as soon as it finds the
// key.

#ifndef KERNELS_ENGINE_ROWS_GPU_NEW_ROWS_H_
#define KERNELS_ENGINE_ROWS_GPU_NEW_ROWS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// Thread-safe, except the calls that must run alone.
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

  // The queue while one writer has it. Other writers wait; Add does not. A
  // thread that takes the queues of several tables takes them in the order of
  // the objects' addresses.
  class Writing {
   public:
    // Throws std::bad_alloc, and changes nothing then.
    explicit Writing(NewRows* rows);
    // Removes what was written. The rest stays for the next writer.
    ~Writing();
    Writing(const Writing&) = delete;
    Writing& operator=(const Writing&) = delete;

    const Queue& queue() const { return rows_->taken_; }
    // Report that the next n rows or keys of the queue were written.
    void WroteRows(size_t n) { num_rows_ += n; }
    void WroteKeys(size_t n) { num_keys_ += n; }
    bool wrote_any() const { return num_rows_ + num_keys_ != 0; }

   private:
    NewRows* const rows_;
    const std::unique_lock<std::mutex> writer_;
    size_t num_rows_ = 0, num_keys_ = 0;
  };

  // Adds a row, and its key unless that is null. ResourceExhausted: no memory;
  // nothing is added then.
  Status Add(const int64_t* key, RowHandle handle, int64_t default_row);
  // False only if all rows and keys have been written.
  bool has_any() const { return has_any_.load(std::memory_order_acquire); }

  // --- Must run alone. Allocate nothing ---

  // Remove these rows, or keys, if they are in the queue. ForgetKeys returns
  // how many were.
  void ForgetRows(Span<const RowHandle> handles);
  int64_t ForgetKeys(Span<const int64_t> keys);
  // Forgets the queue.
  void Clear();

 private:
  // Appends queue_ to taken_. REQUIRES writer_mu_ and mu_. Throws
  // std::bad_alloc, and changes nothing then.
  void TakeAll();
  // REQUIRES mu_, and writer_mu_ or running alone.
  void UpdateHasAny();

  std::mutex writer_mu_;
  std::mutex mu_;
  Queue queue_;  // what was added since the last Writing
  // Rows of the current writer, or those that the last one left. Guarded by
  // writer_mu_.
  Queue taken_;
  std::atomic<bool> has_any_{false};
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_NEW_ROWS_H_

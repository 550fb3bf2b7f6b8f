// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu/new_rows.h"

#include <new>
#include <utility>

namespace ev {
namespace gpu {

Status NewRows::Add(const int64_t* key, RowHandle handle, int64_t default_row) {
  try {
    std::lock_guard<std::mutex> lock(mu_);
    if (key != nullptr) queue_.keys.push_back(Key{*key, handle});
    try {
      queue_.rows.push_back(Row{handle, default_row});
    } catch (const std::bad_alloc&) {
      if (key != nullptr) queue_.keys.pop_back();
      throw;
    }
    has_any_.store(true, std::memory_order_release);
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("no memory to remember a new row");
  }
  return Status::OK();
}

std::unique_lock<std::mutex> NewRows::Take(Queue* queue) {
  std::unique_lock<std::mutex> writer(writer_mu_);
  std::lock_guard<std::mutex> lock(mu_);
  std::swap(*queue, queue_);
  return writer;
}

void NewRows::Done() {
  std::lock_guard<std::mutex> lock(mu_);
  if (queue_.empty()) has_any_.store(false, std::memory_order_release);
}

void NewRows::GiveBack(const Queue& queue) {
  std::lock_guard<std::mutex> lock(mu_);
  queue_.rows.insert(queue_.rows.end(), queue.rows.begin(), queue.rows.end());
  queue_.keys.insert(queue_.keys.end(), queue.keys.begin(), queue.keys.end());
}

void NewRows::Clear() {
  std::lock_guard<std::mutex> lock(mu_);
  queue_ = Queue();
  has_any_.store(false, std::memory_order_release);
}

}  // namespace gpu
}  // namespace ev

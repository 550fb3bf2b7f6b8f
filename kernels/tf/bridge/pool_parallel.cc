// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/bridge/pool_parallel.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>

#include "kernels/engine/base/task_errors.h"
#include "tensorflow/core/lib/core/threadpool.h"

namespace embedding_variable {
namespace {

// One call's tasks. A helper may start after the call has returned: it then
// finds no task left and touches nothing but this.
struct Tasks {
  Tasks(int64_t n, const std::function<void(int64_t)>* b)
      : num_tasks(n), body(b) {}

  const int64_t num_tasks;
  const std::function<void(int64_t)>* const body;
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> done{0};
  std::mutex mutex;
  std::condition_variable all_done;
  ev::TaskErrors errors;

  void Work() {
    int64_t finished = 0;
    for (;;) {
      const int64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= num_tasks) break;
      errors.Run(i, *body);
      ++finished;
    }
    if (finished == 0) return;
    const int64_t before = done.fetch_add(finished, std::memory_order_acq_rel);
    if (before + finished == num_tasks) {
      std::lock_guard<std::mutex> lock(mutex);
      all_done.notify_all();
    }
  }

  void Wait() {
    if (done.load(std::memory_order_acquire) == num_tasks) return;
    std::unique_lock<std::mutex> lock(mutex);
    all_done.wait(lock, [this] {
      return done.load(std::memory_order_acquire) == num_tasks;
    });
  }
};

}  // namespace

PoolParallel::PoolParallel(
    const tensorflow::DeviceBase::CpuWorkerThreads& workers)
    : pool_(workers.workers), num_threads_(std::max(1, workers.num_threads)) {}

void PoolParallel::For(int64_t num_tasks,
                       const std::function<void(int64_t)>& body) {
  const int64_t helpers = std::min<int64_t>(num_threads_ - 1, num_tasks - 1);
  if (helpers <= 0 || pool_ == nullptr) {
    ev::TaskErrors errors;
    for (int64_t i = 0; i < num_tasks; ++i) errors.Run(i, body);
    errors.Rethrow();
    return;
  }
  const auto tasks = std::make_shared<Tasks>(num_tasks, &body);
  try {
    for (int64_t h = 0; h < helpers; ++h) {
      pool_->Schedule([tasks] { tasks->Work(); });
    }
  } catch (const std::bad_alloc&) {
    // The helpers that there are do it, and the caller.
  }
  tasks->Work();
  tasks->Wait();
  tasks->errors.Rethrow();
}

}  // namespace embedding_variable

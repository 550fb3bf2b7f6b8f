// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/bridge/pool_parallel.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "kernels/engine/base/task_errors.h"
#include "tensorflow/core/lib/core/threadpool.h"

namespace embedding_variable {
namespace {

// How often a caller checks for the end, for some 20 us, before it sleeps. A
// sleeping caller was measured to wake 35 us after the last task.
constexpr int kLooks = 500;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// The tasks of one call. A helper may start after the call has returned; it
// then finds no task left and accesses only this object.
struct Tasks : public std::enable_shared_from_this<Tasks> {
  Tasks(int64_t n, const std::function<void(int64_t)>* b,
        tensorflow::thread::ThreadPool* p)
      : num_tasks(n), body(b), pool(p) {}

  const int64_t num_tasks;
  const std::function<void(int64_t)>* const body;
  tensorflow::thread::ThreadPool* const pool;
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> done{0};
  std::mutex mutex;
  std::condition_variable all_done;
  ev::TaskErrors errors;

  // Starts helpers [begin, end), and runs tasks. Each helper starts half of the
  // remaining ones, because one thread would take 3 us for each.
  void WorkWith(int64_t begin, int64_t end) {
    try {
      while (begin < end && next.load(std::memory_order_relaxed) < num_tasks) {
        const int64_t middle = begin + (end - begin) / 2;
        const auto self = shared_from_this();
        pool->Schedule(
            [self, middle, end] { self->WorkWith(middle + 1, end); });
        end = middle;
      }
    } catch (const std::bad_alloc&) {
      // The helpers started so far and the caller do the work.
    }
    Work();
  }

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
    for (int look = 0; look < kLooks; ++look) {
      if (done.load(std::memory_order_acquire) == num_tasks) return;
      Pause();
    }
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
  const auto tasks = std::make_shared<Tasks>(num_tasks, &body, pool_);
  tasks->WorkWith(0, helpers);
  tasks->Wait();
  tasks->errors.Rethrow();
}

void PoolParallel::Later(std::function<void()> work) {
  if (pool_ == nullptr) return work();
  pool_->Schedule(std::move(work));
}

}  // namespace embedding_variable

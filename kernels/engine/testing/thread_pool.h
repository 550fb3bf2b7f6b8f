// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The Parallel of tests and benchmarks: a fixed number of threads, created
// once.

#ifndef KERNELS_ENGINE_TESTING_THREAD_POOL_H_
#define KERNELS_ENGINE_TESTING_THREAD_POOL_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/task_errors.h"

namespace ev {
namespace testing {

// Several threads may call For() at once (they take turns), but not from inside
// a task. For() rethrows the exceptions of tasks at the end.
class ThreadPool : public Parallel {
 public:
  // The caller of For() is one of the num_threads.
  explicit ThreadPool(int num_threads);
  ~ThreadPool() override;

  int num_threads() const override {
    return static_cast<int>(threads_.size()) + 1;
  }
  void For(int64_t num_tasks,
           const std::function<void(int64_t)>& body) override;

 private:
  void Work();
  void RunTasks(std::unique_lock<std::mutex>* lock);

  std::mutex turn_;  // one For() at a time
  std::mutex mu_;
  std::condition_variable work_, done_;
  const std::function<void(int64_t)>* body_ = nullptr;
  int64_t next_ = 0, end_ = 0, running_ = 0;
  bool stop_ = false;
  TaskErrors errors_;
  std::vector<std::thread> threads_;
};

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_THREAD_POOL_H_

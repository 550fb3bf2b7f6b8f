// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/testing/thread_pool.h"

namespace ev {
namespace testing {

ThreadPool::ThreadPool(int num_threads) {
  for (int t = 1; t < num_threads; ++t) {
    threads_.emplace_back([this] { Work(); });
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::RunTasks(std::unique_lock<std::mutex>* lock) {
  while (next_ < end_) {
    const int64_t task = next_++;
    const std::function<void(int64_t)>* body = body_;
    ++running_;
    lock->unlock();
    errors_.Run(task, *body);
    lock->lock();
    --running_;
  }
  if (running_ == 0) done_.notify_all();
}

void ThreadPool::Work() {
  std::unique_lock<std::mutex> lock(mu_);
  for (;;) {
    work_.wait(lock, [this] { return stop_ || next_ < end_; });
    if (stop_) return;
    RunTasks(&lock);
  }
}

void ThreadPool::For(int64_t num_tasks,
                     const std::function<void(int64_t)>& body) {
  std::lock_guard<std::mutex> turn(turn_);
  std::unique_lock<std::mutex> lock(mu_);
  body_ = &body;
  next_ = 0;
  end_ = num_tasks;
  if (num_tasks > 1) work_.notify_all();
  RunTasks(&lock);
  done_.wait(lock, [this] { return running_ == 0; });
  errors_.Rethrow();
}

}  // namespace testing
}  // namespace ev

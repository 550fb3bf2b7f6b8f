// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/ssd/io_threads.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

#include "kernels/engine/base/task_errors.h"

namespace ev {
namespace {

// Reads in flight at once; more than this gains little on an SSD.
constexpr int kThreads = 32;

struct Job {
  Job(int64_t n, const std::function<void(int64_t)>& b) : count(n), body(b) {}

  // Returns when no task is left to start.
  void Work() {
    int64_t mine = 0;
    for (;;) {
      const int64_t i = next.fetch_add(1);
      if (i >= count) break;
      errors.Run(i, body);
      ++mine;
    }
    if (mine == 0) return;
    std::lock_guard<std::mutex> lock(mu);
    done += mine;
    if (done == count) all_done.notify_all();
  }

  const int64_t count;
  const std::function<void(int64_t)>& body;  // used by started tasks only
  std::atomic<int64_t> next{0};
  std::mutex mu;
  std::condition_variable all_done;
  TaskErrors errors;
  int64_t done = 0;
};

class IoThreads {
 public:
  void Offer(const std::shared_ptr<Job>& job, int64_t helpers) {
    {
      std::lock_guard<std::mutex> lock(mu_);
      try {
        for (int64_t i = 0; i < helpers; ++i) queue_.push_back(job);
      } catch (const std::bad_alloc&) {
        // Run with fewer helpers.
      }
      while (running_ < kThreads &&
             running_ < static_cast<int64_t>(queue_.size())) {
        try {
          std::thread([this] { Loop(); }).detach();
        } catch (const std::exception&) {
          // No more threads, or no memory for one: the existing ones and the
          // caller do the work. The job is in the queue, so Offer must return.
          break;
        }
        ++running_;
      }
    }
    work_.notify_all();
  }

 private:
  void Loop() {
    for (;;) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock<std::mutex> lock(mu_);
        work_.wait(lock, [this] { return !queue_.empty(); });
        job = std::move(queue_.front());
        queue_.pop_front();
      }
      job->Work();
    }
  }

  std::mutex mu_;
  std::condition_variable work_;
  std::deque<std::shared_ptr<Job>> queue_;
  int64_t running_ = 0;
};

// Never destroyed: its threads wait in it while the process exits.
IoThreads& TheIoThreads() {
  static IoThreads* const threads = new IoThreads;
  return *threads;
}

}  // namespace

void RunBlocking(int64_t count, const std::function<void(int64_t)>& body) {
  if (count == 1) body(0);
  if (count <= 1) return;
  const std::shared_ptr<Job> job = std::make_shared<Job>(count, body);
  TheIoThreads().Offer(job, std::min<int64_t>(count - 1, kThreads));
  job->Work();
  std::unique_lock<std::mutex> lock(job->mu);
  job->all_done.wait(lock, [&] { return job->done == job->count; });
  job->errors.Rethrow();
}

}  // namespace ev

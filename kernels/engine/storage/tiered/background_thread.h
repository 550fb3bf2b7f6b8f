// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A thread that runs a function whenever it is woken, for example to keep
// cache slots free. It is started at the first Wake, so a table that never
// lacks a cache slot has no thread.

#ifndef KERNELS_ENGINE_STORAGE_TIERED_BACKGROUND_THREAD_H_
#define KERNELS_ENGINE_STORAGE_TIERED_BACKGROUND_THREAD_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace ev {

// Thread-safe except for Stop and the destructor.
class BackgroundThread {
 public:
  // body runs on the thread after one or several calls of Wake. If it throws
  // std::bad_alloc, that run ends. It must return soon once stopping() is true.
  explicit BackgroundThread(std::function<void()> body)
      : body_(std::move(body)) {}
  ~BackgroundThread() { Stop(); }
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  // Runs the body once more. If the system cannot create the thread, nothing
  // happens, and the next Wake tries again.
  void Wake();
  // Returns when the thread has ended. Wake must not be called afterwards.
  void Stop();
  bool stopping() const { return stop_.load(std::memory_order_relaxed); }

 private:
  void Run();

  const std::function<void()> body_;
  std::mutex mu_;
  std::condition_variable wake_;
  bool wanted_ = false;
  std::atomic<bool> stop_{false};  // written under mu_
  std::thread thread_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_TIERED_BACKGROUND_THREAD_H_

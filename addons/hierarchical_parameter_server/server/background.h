// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A thread for work that no lookup waits for, such as caching rows after the
// lookup that missed them was answered. The queue is bounded: when it is full,
// work is dropped, and the next lookup that misses offers it again.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_BACKGROUND_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_BACKGROUND_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace hps {

// Thread-safe.
class Background {
 public:
  Background();
  // Waits for the running work; queued work is dropped.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Enqueues work without waiting; returns false if the queue is full. The work
  // must not throw.
  bool Offer(std::function<void()> work);
  // Waits until all work offered before has been done. For tests.
  void Drain();

 private:
  void Work();

  static constexpr size_t kMostWorks = 64;
  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> works_;
  bool busy_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_BACKGROUND_H_

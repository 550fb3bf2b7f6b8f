// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A thread for work that no lookup waits for: rows that come up into the cache
// after the lookup that missed them was answered. The queue is bounded; what
// does not fit is not done, and the next lookup that misses offers it again.

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
  // Ends after the work that runs; what waits is not done.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Never waits for work. Returns whether there was room. The work throws
  // nothing.
  bool Offer(std::function<void()> work);
  // Until all that was offered before has been done. For tests.
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

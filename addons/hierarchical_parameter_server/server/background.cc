// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/background.h"

#include <utility>

namespace hps {

Background::Background() : thread_([this] { Work(); }) {}

Background::~Background() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stop_ = true;
    works_.clear();
  }
  changed_.notify_all();
  thread_.join();
}

bool Background::Offer(std::function<void()> work) {
  std::lock_guard<std::mutex> lock(mu_);
  if (works_.size() >= kMostWorks) return false;
  works_.push_back(std::move(work));
  changed_.notify_all();
  return true;
}

void Background::Drain() {
  std::unique_lock<std::mutex> lock(mu_);
  changed_.wait(lock, [this] { return works_.empty() && !busy_; });
}

void Background::Work() {
  std::unique_lock<std::mutex> lock(mu_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !works_.empty(); });
    if (stop_) return;
    std::function<void()> work = std::move(works_.front());
    works_.pop_front();
    busy_ = true;
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace hps

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/tiered/background_thread.h"

#include <exception>
#include <new>

namespace ev {

void BackgroundThread::Wake() {
  std::lock_guard<std::mutex> lock(mu_);
  wanted_ = true;
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { Run(); });
    } catch (const std::exception&) {
      return;
    }
  }
  wake_.notify_one();
}

void BackgroundThread::Stop() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BackgroundThread::Run() {
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mu_);
      wake_.wait(lock, [this] { return wanted_ || stop_.load(); });
      if (stop_.load()) return;
      wanted_ = false;
    }
    try {
      body_();
    } catch (const std::bad_alloc&) {
    }
  }
}

}  // namespace ev

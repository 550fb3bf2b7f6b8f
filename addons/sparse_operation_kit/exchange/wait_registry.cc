// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/wait_registry.h"

#include <chrono>

namespace sok {
namespace {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

WaitRegistry& WaitRegistry::Global() {
  static WaitRegistry* const registry = new WaitRegistry;
  return *registry;
}

uint64_t WaitRegistry::Begin(std::string what) {
  std::lock_guard<std::mutex> lock(mu_);
  const uint64_t number = next_++;
  entries_[number] = Entry{std::move(what), NowNs()};
  return number;
}

void WaitRegistry::End(uint64_t number) {
  std::lock_guard<std::mutex> lock(mu_);
  entries_.erase(number);
}

double WaitRegistry::Longest(std::string* what) const {
  std::lock_guard<std::mutex> lock(mu_);
  what->clear();
  if (entries_.empty()) return 0;
  const Entry& oldest = entries_.begin()->second;
  *what = oldest.what;
  return (NowNs() - oldest.begin_ns) * 1e-9;
}

}  // namespace sok

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/warnings.h"

#include <atomic>
#include <mutex>
#include <utility>

namespace hps {
namespace {

constexpr size_t kMostLines = 100;

struct State {
  std::atomic<bool> has_lines{false};
  std::mutex mutex;
  std::vector<std::string> lines;  // guarded by mutex
};

// Never destroyed: threads may still look up while the process exits.
State* TheState() {
  static State* const state = new State;
  return state;
}

}  // namespace

void Warn(std::string line) {
  State* const state = TheState();
  std::lock_guard<std::mutex> lock(state->mutex);
  if (state->lines.size() == kMostLines) {
    state->lines.erase(state->lines.begin());
  }
  state->lines.push_back(std::move(line));
  state->has_lines.store(true, std::memory_order_relaxed);
}

std::vector<std::string> TakeWarnings() {
  State* const state = TheState();
  std::vector<std::string> lines;
  if (!state->has_lines.load(std::memory_order_relaxed)) return lines;
  std::lock_guard<std::mutex> lock(state->mutex);
  lines.swap(state->lines);
  state->has_lines.store(false, std::memory_order_relaxed);
  return lines;
}

}  // namespace hps

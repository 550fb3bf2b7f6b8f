// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/cache/key_changes.h"

#include <algorithm>
#include <unordered_set>

namespace hps {

KeyChanges::KeyChanges(int bits)
    : shift_(64 - bits), last_(size_t{1} << bits, 0) {}

void KeyChanges::Add(ev::Span<const int64_t> keys) {
  if (keys.empty()) return;
  const int64_t now = count_.load(std::memory_order_relaxed) + 1;
  for (const int64_t key : keys) last_[NumberOf(key)] = now;
  count_.store(now, std::memory_order_release);
}

void KeyChanges::AddAll() {
  all_ = count_.load(std::memory_order_relaxed) + 1;
  count_.store(all_, std::memory_order_release);
}

bool KeyChanges::HasChanged(int64_t key, int64_t seen) const {
  return std::max(all_, last_[NumberOf(key)]) > seen;
}

std::vector<int64_t> LastOfEach(ev::Span<const int64_t> keys) {
  std::unordered_set<int64_t> later;
  later.reserve(keys.size());
  std::vector<int64_t> last;
  for (size_t i = keys.size(); i > 0; --i) {
    if (later.insert(keys[i - 1]).second) last.push_back(i - 1);
  }
  std::reverse(last.begin(), last.end());
  return last;
}

}  // namespace hps

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/tiered/hold_numbers.h"

#include <limits>

namespace ev {

// Called under mu_. Forgets the objects counted under numbers that can no
// longer hold any.
void HoldNumbers::Advance(Number by) {
  Number newest = newest_.load(std::memory_order_relaxed);
  for (; by > 0; --by) things_[++newest % 4] = 0;
  newest_.store(newest, std::memory_order_release);
}

bool HoldNumbers::TryEnter(int64_t things, int64_t most, Number* number) {
  std::lock_guard<std::mutex> lock(mu_);
  Number newest = newest_.load(std::memory_order_relaxed);
  if (calls_[newest % 2] > 0 && calls_[(newest - 1) % 2] == 0) {
    Advance(1);
    ++newest;
  }
  const int64_t held = things_[newest % 4] + things_[(newest - 1) % 4] +
                       things_[(newest - 2) % 4];
  if (things > most - held) return false;
  ++calls_[newest % 2];
  things_[newest % 4] += things;
  *number = newest;
  return true;
}

HoldNumbers::Number HoldNumbers::Enter() {
  Number number = kNever;
  TryEnter(0, std::numeric_limits<int64_t>::max(), &number);
  return number;
}

void HoldNumbers::Leave(Number number) {
  std::lock_guard<std::mutex> lock(mu_);
  --calls_[number % 2];
  const Number newest = newest_.load(std::memory_order_relaxed);
  if (calls_[0] == 0 && calls_[1] == 0) {
    Advance(3);
  } else if (calls_[(newest - 1) % 2] == 0) {
    Advance(1);
  }
}

}  // namespace ev

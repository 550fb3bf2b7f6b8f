// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Which rows of a faster memory are worth their place. A row's rank is one
// word: the top bit says that it was used since the hand was there, the rest
// how often (kLfu) or when (kLru). A hand goes round the places; rows used
// since its last visit are passed over, and of some times as many others as are
// wanted the lowest go.
//
// Uses fade, a 64th with each visit. A use counts for much more than 64, so
// that of rows used once the one whose use lies farther back goes first
// (docs/design/0009-rows-on-ssd.md says why a 64th).

#ifndef KERNELS_ENGINE_STORAGE_TIERED_USE_RANKS_H_
#define KERNELS_ENGINE_STORAGE_TIERED_USE_RANKS_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/engine/policy/eviction.h"

namespace ev {

// Thread-safe.
class UseRanks {
 public:
  explicit UseRanks(CacheStrategy strategy) : strategy_(strategy) {}

  // Some rows are going to be used.
  void Advance() { now_.fetch_add(1, std::memory_order_relaxed); }
  // The row was used. One that is used at the same time may lose its count.
  void Use(std::atomic<uint32_t>* rank) const {
    uint32_t uses;
    if (strategy_ == CacheStrategy::kLru) {
      uses = now_.load(std::memory_order_relaxed);
    } else {
      uses = rank->load(std::memory_order_relaxed) & ~kUsed;
      uses = std::min(uses, kMost) + kUse;
    }
    rank->store(uses | kUsed, std::memory_order_relaxed);
  }
  // What a row takes with it to the slower memory, and comes back with.
  static uint32_t Kept(const std::atomic<uint32_t>& rank) {
    return rank.load(std::memory_order_relaxed) & ~kUsed;
  }

  // The hand is at the row. Whether it may go, and how much it is worth; only
  // those of one round are to be compared.
  bool Visit(std::atomic<uint32_t>* rank, uint32_t* worth) const {
    const uint32_t seen = rank->load(std::memory_order_relaxed);
    uint32_t plain = seen & ~kUsed;
    if (strategy_ == CacheStrategy::kLfu) {
      plain -= plain / kFading;
      rank->store(plain, std::memory_order_relaxed);
      *worth = plain;
    } else {
      if (seen & kUsed) rank->store(plain, std::memory_order_relaxed);
      // The lowest is the one whose use lies farthest back.
      const uint32_t now = now_.load(std::memory_order_relaxed);
      *worth = ~kUsed - ((now - plain) & ~kUsed);
    }
    return (seen & kUsed) == 0;
  }

 private:
  static constexpr uint32_t kUsed = 0x80000000u;
  static constexpr uint32_t kUse = 1024;
  static constexpr uint32_t kFading = 64;
  static constexpr uint32_t kMost = 0x7FFFFFFFu - kUse;

  const CacheStrategy strategy_;
  std::atomic<uint32_t> now_{0};
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_TIERED_USE_RANKS_H_

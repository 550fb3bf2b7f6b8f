// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A reader-writer lock that many readers can share cheaply. Each thread counts
// itself in its own cache line, so readers on many cores do not contend. A
// writer checks all lines: it is expensive and should hold the lock only
// briefly.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_HASH_MAP_STRIPED_LOCK_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_HASH_MAP_STRIPED_LOCK_H_

#include <sched.h>

#include <atomic>

#include "kernels/engine/base/spin_lock.h"
#include "kernels/engine/base/thread_stripe.h"

namespace hps {

class StripedLock {
 public:
  StripedLock() {}
  StripedLock(const StripedLock&) = delete;
  StripedLock& operator=(const StripedLock&) = delete;

  // Use SharedHold to pair the two calls in one scope.
  void lock_shared() {
    std::atomic<int>& readers = Mine();
    for (;;) {
      readers.fetch_add(1, std::memory_order_seq_cst);
      if (!writer_.load(std::memory_order_seq_cst)) return;
      readers.fetch_sub(1, std::memory_order_release);
      WaitUntil([this] { return !writer_.load(std::memory_order_relaxed); });
    }
  }
  void unlock_shared() { Mine().fetch_sub(1, std::memory_order_release); }

  // REQUIRES: no other thread is in lock() or holds it exclusively (writers use
  // a mutex), and the calling thread does not hold it as a reader.
  void lock() {
    writer_.store(true, std::memory_order_seq_cst);
    for (Stripe& stripe : stripes_) {
      WaitUntil([&stripe] {
        return stripe.readers.load(std::memory_order_seq_cst) == 0;
      });
    }
  }
  void unlock() { writer_.store(false, std::memory_order_seq_cst); }

 private:
  static constexpr unsigned kStripes = 32;
  struct alignas(64) Stripe {
    std::atomic<int> readers{0};
  };

  std::atomic<int>& Mine() {
    return stripes_[ev::ThisThreadStripe() % kStripes].readers;
  }
  template <typename Condition>
  static void WaitUntil(const Condition& condition) {
    for (int spins = 0; !condition(); ++spins) {
      if (spins < 64) {
        ev::CpuRelax();
      } else {
        sched_yield();
      }
    }
  }

  Stripe stripes_[kStripes];
  alignas(64) std::atomic<bool> writer_{false};
};

// Scoped reader lock.
class SharedHold {
 public:
  explicit SharedHold(StripedLock* lock) : lock_(lock) { lock_->lock_shared(); }
  ~SharedHold() { lock_->unlock_shared(); }
  SharedHold(const SharedHold&) = delete;
  SharedHold& operator=(const SharedHold&) = delete;

 private:
  StripedLock* const lock_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_HASH_MAP_STRIPED_LOCK_H_

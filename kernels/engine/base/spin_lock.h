// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A lock of four bytes for critical sections of well under a microsecond. A
// waiter that spins in vain yields its time slice, so more threads than cores
// still make progress.

#ifndef KERNELS_ENGINE_BASE_SPIN_LOCK_H_
#define KERNELS_ENGINE_BASE_SPIN_LOCK_H_

#include <sched.h>

#include <atomic>

namespace ev {

inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Works with std::lock_guard.
class SpinLock {
 public:
  SpinLock() {}
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  void lock() {
    while (locked_.exchange(true, std::memory_order_acquire)) {
      int spins = 0;
      while (locked_.load(std::memory_order_relaxed)) {
        CpuRelax();
        if (++spins == 64) {
          spins = 0;
          sched_yield();
        }
      }
    }
  }
  void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> locked_{false};
};

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_SPIN_LOCK_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// When may memory go that a reader without a lock may still be looking at?
//
// Time is cut into epochs. A reader counts itself into the current epoch for
// the length of one batch. The epoch moves on only when no reader is left in
// the one before it, so two epochs at most have readers. What was taken out of
// sight in epoch s can therefore be freed in epoch s + 2: every reader that
// could have seen it has left.
//
// One domain serves the whole process: a reader costs two atomic additions to a
// line that it shares with few threads, whatever the number of tables.

#ifndef KERNELS_ENGINE_BASE_EPOCH_H_
#define KERNELS_ENGINE_BASE_EPOCH_H_

#include <atomic>
#include <cstdint>

#include "kernels/engine/base/pages.h"
#include "kernels/engine/base/thread_stripe.h"

namespace ev {

class EpochDomain {
 public:
  static EpochDomain& Global();

  // Everything that this thread reaches while a Guard lives, and that was in
  // sight when it was made, stays. Guards nest. Never waits for a writer.
  class Guard {
   public:
    Guard() : counter_(Global().Enter()) {}
    ~Guard() { counter_->fetch_sub(1, std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    std::atomic<int64_t>* counter_;
  };

  // Call after something was taken out of sight: its stamp.
  uint64_t Stamp() {
    // A read-modify-write, so that a reader that enters a later epoch also sees
    // that it is out of sight; a plain load could be done before that store
    // lands.
    return epoch_.fetch_add(0, std::memory_order_acq_rel);
  }

  // Whether what has this stamp may be freed now. Moves the epoch on if it can;
  // never waits.
  bool Expired(uint64_t stamp);

 private:
  static constexpr unsigned kStripes = 32;
  // Readers per epoch modulo 3: the one before, the current, the next.
  struct alignas(kCacheLine) Stripe {
    std::atomic<int64_t> readers[3];
  };

  std::atomic<int64_t>* Enter() {
    Stripe& stripe = stripes_[ThisThreadStripe() % kStripes];
    for (;;) {
      const uint64_t epoch = epoch_.load(std::memory_order_acquire);
      std::atomic<int64_t>* counter = &stripe.readers[epoch % 3];
      counter->fetch_add(1, std::memory_order_seq_cst);
      // Counted in time only if the epoch is still the same now.
      if (epoch_.load(std::memory_order_seq_cst) == epoch) return counter;
      counter->fetch_sub(1, std::memory_order_release);
    }
  }

  alignas(kCacheLine) std::atomic<uint64_t> epoch_{3};
  Stripe stripes_[kStripes] = {};
};

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_EPOCH_H_

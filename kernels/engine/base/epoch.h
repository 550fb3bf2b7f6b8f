// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Epoch-based reclamation: decides when memory that readers without a lock may
// still be reading can be freed.
//
// Time is divided into epochs. A reader counts itself into the current epoch
// for the length of one batch. The epoch advances only when the previous one
// has no reader left, so at most two epochs have readers. An object that was
// unlinked in epoch s can be freed in epoch s + 2: every reader that could have
// seen it has left.
//
// One domain serves the whole process. A reader costs two atomic additions to a
// cache line that few threads share, however many tables there are.

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

  // Keeps alive every object that was linked when the guard was made. Guards
  // nest. Never waits for a writer.
  class Guard {
   public:
    Guard() : counter_(Global().Enter()) {}
    ~Guard() { counter_->fetch_sub(1, std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    std::atomic<int64_t>* counter_;
  };

  // Returns the stamp of an object. Call it after the object was unlinked.
  uint64_t Stamp() {
    // A read-modify-write, so that a reader that enters a later epoch also sees
    // that the object is unlinked. A plain load could execute before the
    // unlinking store becomes visible.
    return epoch_.fetch_add(0, std::memory_order_acq_rel);
  }

  // Returns whether an object with this stamp may be freed now. Advances the
  // epoch if possible; never waits.
  bool Expired(uint64_t stamp);

 private:
  static constexpr unsigned kStripes = 32;
  // Readers per epoch modulo 3: the previous, the current and the next epoch.
  struct alignas(kCacheLine) Stripe {
    std::atomic<int64_t> readers[3];
  };

  std::atomic<int64_t>* Enter() {
    Stripe& stripe = stripes_[ThisThreadStripe() % kStripes];
    for (;;) {
      const uint64_t epoch = epoch_.load(std::memory_order_acquire);
      std::atomic<int64_t>* counter = &stripe.readers[epoch % 3];
      counter->fetch_add(1, std::memory_order_seq_cst);
      // If the epoch has changed meanwhile, the count may have come too late to
      // keep the epoch from advancing, so try again.
      if (epoch_.load(std::memory_order_seq_cst) == epoch) return counter;
      counter->fetch_sub(1, std::memory_order_release);
    }
  }

  alignas(kCacheLine) std::atomic<uint64_t> epoch_{3};
  Stripe stripes_[kStripes] = {};
};

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_EPOCH_H_

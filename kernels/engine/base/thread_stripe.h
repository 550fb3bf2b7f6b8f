// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A small number per thread, for structures with one cache line per group of
// threads instead of one contended line for all.

#ifndef KERNELS_ENGINE_BASE_THREAD_STRIPE_H_
#define KERNELS_ENGINE_BASE_THREAD_STRIPE_H_

#include <atomic>

namespace ev {

// Returns the same number on every call of one thread. Threads get 0, 1, 2, ...
// in the order of their first call.
inline unsigned ThisThreadStripe() {
  static std::atomic<unsigned> next{0};
  static thread_local const unsigned stripe =
      next.fetch_add(1, std::memory_order_relaxed);
  return stripe;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_THREAD_STRIPE_H_

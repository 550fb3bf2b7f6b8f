// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/epoch.h"

namespace ev {

EpochDomain& EpochDomain::Global() {
  // Constant-initialized and never destroyed: threads may outlive main().
  static EpochDomain domain;
  return domain;
}

bool EpochDomain::Expired(uint64_t stamp) {
  for (;;) {
    uint64_t epoch = epoch_.load(std::memory_order_seq_cst);
    if (epoch >= stamp + 2) return true;
    for (const Stripe& stripe : stripes_) {
      if (stripe.readers[(epoch + 2) % 3].load(std::memory_order_seq_cst) !=
          0) {
        return false;
      }
    }
    epoch_.compare_exchange_strong(epoch, epoch + 1, std::memory_order_seq_cst);
  }
}

}  // namespace ev

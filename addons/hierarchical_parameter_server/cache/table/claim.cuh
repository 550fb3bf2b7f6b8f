// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Takes a free slot for a key, without a lock.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_CLAIM_CUH_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_CLAIM_CUH_

#include <cstdint>

#include "addons/hierarchical_parameter_server/cache/table/warp_probe.cuh"

namespace ev {
namespace gpu {

// Puts the key into the first free slot of a bucket. free: the slots that were
// free when the lane read the bucket. Returns the slot that now holds the key,
// whichever lane put it there, or -1 if other keys took all free slots.
__device__ __forceinline__ int ClaimSlot(int64_t* bucket, int64_t key,
                                         uint32_t parity, uint32_t free,
                                         bool* is_new) {
  const int64_t empty = EmptyMark(parity), erased = ErasedMark(parity);
  while (free != 0) {
    const int slot = SlotOfBit(__ffs(free) - 1);
    unsigned long long* p =
        reinterpret_cast<unsigned long long*>(bucket + slot);
    // Tries "empty" first, the common case; an erased slot costs a second try.
    // In this kernel a free slot changes into a key once and never back.
    int64_t was = static_cast<int64_t>(
        atomicCAS(p, static_cast<unsigned long long>(empty),
                  static_cast<unsigned long long>(key)));
    if (was == empty) {
      *is_new = true;
      return slot;
    }
    if (was == erased) {
      was = static_cast<int64_t>(
          atomicCAS(p, static_cast<unsigned long long>(erased),
                    static_cast<unsigned long long>(key)));
      if (was == erased) {
        *is_new = true;
        return slot;
      }
    }
    if (was == key) return slot;
    free &= free - 1;
  }
  return -1;
}

}  // namespace gpu
}  // namespace ev

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_CLAIM_CUH_

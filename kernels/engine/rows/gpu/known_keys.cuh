// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// How a thread looks a key up in KnownKeys, and puts one there.

#ifndef KERNELS_ENGINE_ROWS_GPU_KNOWN_KEYS_CUH_
#define KERNELS_ENGINE_ROWS_GPU_KNOWN_KEYS_CUH_

#include <cstdint>

#include "kernels/engine/rows/gpu/known_keys.h"

namespace ev {
namespace gpu {

// Whether the key has a slot of its own, and which.
__device__ __forceinline__ bool HasOwnSlot(int64_t key) {
  return key <= kErasedKey;
}
__device__ __forceinline__ uint64_t OwnSlot(const KnownKeysView& known,
                                            int64_t key) {
  return known.num_buckets * kKnownBucket +
         static_cast<uint64_t>(key - kEmptyKey);
}

// The four keys of a bucket as other threads left them, from L2. A key that is
// being put there may be missed.
__device__ __forceinline__ void LoadBucket(const int64_t* bucket,
                                           int64_t* keys) {
  asm volatile("ld.relaxed.gpu.global.v2.s64 {%0, %1}, [%2];"
               : "=l"(keys[0]), "=l"(keys[1])
               : "l"(bucket)
               : "memory");
  asm volatile("ld.relaxed.gpu.global.v2.s64 {%0, %1}, [%2];"
               : "=l"(keys[2]), "=l"(keys[3])
               : "l"(bucket + 2)
               : "memory");
}

__device__ __forceinline__ uint64_t FirstBucket(const KnownKeysView& known,
                                                int64_t key) {
  return __umul64hi(known.hash(key), known.num_buckets);
}

// The slot of a key, or kNoSlot. Walks past erased keys, and ends at a bucket
// with an empty slot.
constexpr uint64_t kNoSlot = ~uint64_t{0};
__device__ __forceinline__ uint64_t FindSlot(const KnownKeysView& known,
                                             int64_t key) {
  if (HasOwnSlot(key)) return OwnSlot(known, key);
  for (uint64_t bucket = FirstBucket(known, key);;) {
    int64_t keys[kKnownBucket];
    LoadBucket(known.keys + bucket * kKnownBucket, keys);
    bool is_last = false;
#pragma unroll
    for (int k = 0; k < kKnownBucket; ++k) {
      if (keys[k] == key) return bucket * kKnownBucket + k;
      is_last |= keys[k] == kEmptyKey;
    }
    if (is_last) return kNoSlot;
    if (++bucket == known.num_buckets) bucket = 0;
  }
}

// kNoRow: not known, or not yet.
__device__ __forceinline__ RowHandle FindKnown(const KnownKeysView& known,
                                               int64_t key) {
  if (known.num_buckets == 0) return kNoRow;
  const uint64_t slot = FindSlot(known, key);
  return slot == kNoSlot ? kNoRow : __ldcg(known.handles + slot);
}

// REQUIRES a free slot. Equal keys meet in one slot: the walk passes no free
// one but to see whether the key is further on, free ones only get taken while
// keys are put, and a thread that loses one looks again.
__device__ __forceinline__ void PutKnown(const KnownKeysView& known,
                                         int64_t key, RowHandle handle) {
  uint64_t slot = kNoSlot;
  if (HasOwnSlot(key)) slot = OwnSlot(known, key);
  while (slot == kNoSlot) {
    uint64_t free = kNoSlot;
    int64_t was = kEmptyKey;
    bool is_last = false;
    for (uint64_t bucket = FirstBucket(known, key);
         slot == kNoSlot && !is_last;) {
      int64_t keys[kKnownBucket];
      LoadBucket(known.keys + bucket * kKnownBucket, keys);
#pragma unroll
      for (int k = 0; k < kKnownBucket; ++k) {
        const uint64_t at = bucket * kKnownBucket + k;
        if (keys[k] == key) slot = at;
        if (keys[k] <= kErasedKey && free == kNoSlot) {
          free = at;
          was = keys[k];
        }
        is_last |= keys[k] == kEmptyKey;
      }
      if (++bucket == known.num_buckets) bucket = 0;
    }
    if (slot != kNoSlot) break;
    const int64_t seen = static_cast<int64_t>(
        atomicCAS(reinterpret_cast<unsigned long long*>(known.keys + free),
                  static_cast<unsigned long long>(was),
                  static_cast<unsigned long long>(key)));
    if (seen == key) {
      slot = free;
    } else if (seen == was) {
      slot = free;
      atomicAdd(known.counters + kKeysKnown, 1u);
      if (was == kEmptyKey) atomicAdd(known.counters + kSlotsUsed, 1u);
    }
  }
  // The same whichever thread puts it: the index knows one handle for a key.
  __stcg(known.handles + slot, handle);
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_KNOWN_KEYS_CUH_

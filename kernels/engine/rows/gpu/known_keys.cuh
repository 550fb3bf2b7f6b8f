// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Device functions that find a key in KnownKeys, and insert one.

#ifndef KERNELS_ENGINE_ROWS_GPU_KNOWN_KEYS_CUH_
#define KERNELS_ENGINE_ROWS_GPU_KNOWN_KEYS_CUH_

#include <cstdint>

#include "kernels/engine/rows/gpu/known_keys.h"

namespace ev {
namespace gpu {

// kEmptyKey and kErasedKey mark free slots, so as keys they have reserved slots
// behind all buckets. HasOwnSlot returns whether a key is one of them; OwnSlot
// returns its slot.
__device__ __forceinline__ bool HasOwnSlot(int64_t key) {
  return key <= kErasedKey;
}
__device__ __forceinline__ uint64_t OwnSlot(const KnownKeysView& known,
                                            int64_t key) {
  return known.num_buckets * kKnownBucket +
         static_cast<uint64_t>(key - kEmptyKey);
}

// Loads the four keys of a bucket from L2, where other threads' inserts are
// visible. May miss a key that is being inserted.
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

// Returns the slot of a key, or kNoSlot. Passes erased slots, and ends at the
// first bucket with an empty slot.
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

// Returns the handle of the key's row, or kNoRow if the key is not in the table
// or is still being inserted.
__device__ __forceinline__ RowHandle FindKnown(const KnownKeysView& known,
                                               int64_t key) {
  if (known.num_buckets == 0) return kNoRow;
  const uint64_t slot = FindSlot(known, key);
  return slot == kNoSlot ? kNoRow : __ldcg(known.handles + slot);
}

// Inserts a key. REQUIRES a free slot.
//
// Threads that insert the same key at the same time end at the same slot. Each
// takes the first free slot of the key's walk after it has seen that the key is
// not further on. While keys are inserted, slots are only taken, never freed. A
// thread that loses a slot searches again.
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
  // All threads that insert a key write the same handle: the index has one
  // handle per key.
  __stcg(known.handles + slot, handle);
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_KNOWN_KEYS_CUH_

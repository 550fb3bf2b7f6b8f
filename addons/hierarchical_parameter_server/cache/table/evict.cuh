// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Shared by the kernels of one evicting call: lists and marks in device memory,
// and the meaning of scores. evict.cu describes how the kernels work together.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_EVICT_CUH_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_EVICT_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "addons/hierarchical_parameter_server/cache/table/launch.cuh"
#include "addons/hierarchical_parameter_server/cache/table/table_set.h"
#include "addons/hierarchical_parameter_server/cache/table/warp_probe.cuh"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// Meaning of a score under each policy. "New" means inserted by the running
// call.
template <Eviction kEviction>
struct Policy;

template <>
struct Policy<Eviction::kLru> {
  // Another occurrence may be inserting the key at this moment, and "new" must
  // win.
  static __device__ __forceinline__ void Use(uint64_t* score, uint64_t call) {
    atomicMax(reinterpret_cast<unsigned long long*>(score),
              static_cast<unsigned long long>(call << kLruCallShift));
  }
  static __device__ __forceinline__ void SetNew(uint64_t* score,
                                                uint64_t call) {
    atomicMax(reinterpret_cast<unsigned long long*>(score),
              static_cast<unsigned long long>(NewScore(call)));
  }
  static __device__ __forceinline__ uint64_t NewScore(uint64_t call) {
    return (call << kLruCallShift) | kLruNew;
  }
  static __device__ __forceinline__ bool IsNew(uint64_t score, uint64_t call) {
    return Order(score) == NewScore(call);
  }
  // The part of the score that decides which key is evicted. It excludes the
  // bit that records that is_new was set.
  static __device__ __forceinline__ uint64_t Order(uint64_t score) {
    return score & ~kLruClaimed;
  }
  // Returns whether this call may have returned this key's slot already.
  static __device__ __forceinline__ bool MayBeUsed(uint64_t score,
                                                   uint64_t call) {
    return (score >> kLruCallShift) == call;
  }
  static __device__ __forceinline__ uint64_t Shown(uint64_t score) {
    return score >> kLruCallShift;
  }
};

template <>
struct Policy<Eviction::kLfu> {
  static __device__ __forceinline__ void Use(uint64_t* score, uint64_t) {
    atomicAdd(reinterpret_cast<unsigned long long*>(score), 1ULL);
  }
  // Free slots and new keys have score zero, old keys more. Finish counts the
  // occurrences of new keys.
  static __device__ __forceinline__ void SetNew(uint64_t*, uint64_t) {}
  static __device__ __forceinline__ uint64_t NewScore(uint64_t) { return 0; }
  static __device__ __forceinline__ bool IsNew(uint64_t score, uint64_t) {
    return score == 0;
  }
  static __device__ __forceinline__ uint64_t Order(uint64_t score) {
    return score;
  }
  static __device__ __forceinline__ bool MayBeUsed(uint64_t, uint64_t) {
    return true;
  }
  static __device__ __forceinline__ uint64_t Shown(uint64_t score) {
    return score;
  }
};

// Returns the number of a bucket's 128-byte line, spread over a power of two.
__device__ __forceinline__ uint64_t LineOf(const int64_t* bucket) {
  const uint64_t line = reinterpret_cast<uint64_t>(bucket) / 128;
  return line ^ (line >> 25);
}

// Marks of buckets. Several buckets may share a bit: a mark set by another
// bucket costs a little time and changes no result. marks: one of the three
// sets in scratch.
__device__ __forceinline__ bool SetMark(const Scratch& scratch, unsigned* marks,
                                        const int64_t* bucket) {
  const uint64_t bit = LineOf(bucket) & (scratch.num_marks - 1);
  const unsigned mask = 1u << (bit % 32);
  return (atomicOr(marks + bit / 32, mask) & mask) != 0;
}
__device__ __forceinline__ bool HasMark(const Scratch& scratch,
                                        const unsigned* marks,
                                        const int64_t* bucket) {
  const uint64_t bit = LineOf(bucket) & (scratch.num_marks - 1);
  return (marks[bit / 32] >> (bit % 32)) & 1;
}

__device__ __forceinline__ void StoreSlot(int64_t* p, int64_t value) {
  asm volatile("st.relaxed.gpu.global.s64 [%0], %1;" ::"l"(p), "l"(value)
               : "memory");
}

// Writes an evicted key into the caller's arrays.
template <Eviction kEviction>
__device__ __forceinline__ void ReportEvicted(const EvictedKeys& evicted,
                                              int64_t at, int64_t key,
                                              int64_t slot, uint64_t score,
                                              int32_t table) {
  evicted.keys[at] = key;
  if (evicted.slots != nullptr) evicted.slots[at] = slot;
  if (evicted.tables != nullptr) evicted.tables[at] = table;
  if (evicted.scores != nullptr) {
    evicted.scores[at] = Policy<kEviction>::Shown(score);
  }
}

// Places keys whose bucket is contended. kFill: old keys stay, and keys without
// a place are listed for kEvict. Each phase enqueues one kernel.
enum class Phase { kFill, kEvict };
template <Phase kPhase>
Status LaunchContest(const Batch& batch, Eviction eviction,
                     const InsertOutputs& outputs, const Scratch& scratch,
                     int64_t* size_counters, const DeviceInfo& device,
                     cudaStream_t stream);

}  // namespace gpu
}  // namespace ev

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_EVICT_CUH_

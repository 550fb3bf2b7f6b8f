// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of one evicting call share: its lists and marks in device
// memory, and what a score means. evict.cu tells how the kernels work together.

#ifndef KERNELS_ENGINE_TABLE_GPU_EVICT_CUH_
#define KERNELS_ENGINE_TABLE_GPU_EVICT_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/engine/base/status.h"
#include "kernels/engine/table/gpu/launch.cuh"
#include "kernels/engine/table/gpu/table_set.h"
#include "kernels/engine/table/gpu/warp_probe.cuh"

namespace ev {
namespace gpu {

// What the two policies' scores mean. "New": inserted by the call that runs.
template <Eviction kEviction>
struct Policy;

template <>
struct Policy<Eviction::kLru> {
  static __device__ __forceinline__ void Use(uint64_t* score, uint64_t call) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(score),
                 "l"(call << kLruCallShift)
                 : "memory");
  }
  static __device__ __forceinline__ uint64_t NewScore(uint64_t call) {
    return (call << kLruCallShift) | kLruNew;
  }
  static __device__ __forceinline__ bool IsNew(uint64_t score, uint64_t call) {
    return Order(score) == NewScore(call);
  }
  // What decides who is evicted: not whether some occurrence said "new".
  static __device__ __forceinline__ uint64_t Order(uint64_t score) {
    return score & ~kLruClaimed;
  }
  // Whether this call may have given this key's slot out.
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
  // Zero until Finish counts the occurrences: that is how a new key is known.
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

// The 128-byte line of a bucket, as a number that spreads over a power of two.
__device__ __forceinline__ uint64_t LineOf(const int64_t* bucket) {
  const uint64_t line = reinterpret_cast<uint64_t>(bucket) / 128;
  return line ^ (line >> 25);
}

// Marks of buckets, many to a bit: a mark that another bucket set costs a little
// time and changes no result.
__device__ __forceinline__ bool SetMark(unsigned* marks,
                                        const int64_t* bucket) {
  const uint64_t bit = LineOf(bucket) % kNumMarks;
  const unsigned mask = 1u << (bit % 32);
  return (atomicOr(marks + bit / 32, mask) & mask) != 0;
}
__device__ __forceinline__ bool HasMark(const unsigned* marks,
                                        const int64_t* bucket) {
  const uint64_t bit = LineOf(bucket) % kNumMarks;
  return (marks[bit / 32] >> (bit % 32)) & 1;
}

__device__ __forceinline__ void StoreSlot(int64_t* p, int64_t value) {
  asm volatile("st.relaxed.gpu.global.s64 [%0], %1;" ::"l"(p), "l"(value)
               : "memory");
}

// Places what found its bucket contended. kFill: old keys stay; what finds no
// place goes on the list for kEvict. Both enqueue one kernel.
enum class Phase { kFill, kEvict };
template <Phase kPhase>
Status LaunchContest(const Batch& batch, Eviction eviction,
                     const InsertOutputs& outputs, const Scratch& scratch,
                     int64_t* size_counters, int num_processors,
                     cudaStream_t stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_TABLE_GPU_EVICT_CUH_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The kernels' launchers: what table_set.cu calls. All of them only enqueue.

#ifndef KERNELS_ENGINE_TABLE_GPU_LAUNCH_CUH_
#define KERNELS_ENGINE_TABLE_GPU_LAUNCH_CUH_

#include <cuda_runtime_api.h>

#include "kernels/engine/base/status.h"
#include "kernels/engine/table/gpu/table_set.h"
#include "kernels/engine/table/gpu/warp_probe.cuh"

namespace ev {
namespace gpu {

constexpr int kBlock = 256;

inline unsigned BlocksFor(int64_t threads) {
  return static_cast<unsigned>((threads + kBlock - 1) / kBlock);
}

// A key that found no slot yet in this call.
struct Pending {
  int64_t key;
  int32_t table;
  int32_t index;  // in the batch; -1: another key's tile carries it, which knows
                  // the key and none of its occurrences
  // Free slots of the bucket that it goes to (fill list), or where to report what
  // it evicts (the other lists).
  uint32_t free_or_place;
  uint32_t probes;  // the bucket that it goes to, counted along its chain
};

// The counters of one evicting call.
struct CallState {
  unsigned long long call;  // number of the call, from 1
  int num_fill;
  int num_evict;
  int num_contest_fill;
  int num_contest_evict;
  int num_overflow;  // keys that kFill's contest gave up, part of contest_evict
  int num_marked;    // not zero: some bucket is marked stale
};

struct Scratch {
  CallState* state;
  unsigned* locks;    // [kNumLocks] one bit of a word used
  unsigned* claimed;  // [kNumMarks / 32] buckets that some key of Evict took
  unsigned* stale;    // [kNumMarks / 32] buckets that a key left in this call
                      // which this call may have said to be there
  // [max_keys] each.
  Pending* fill;           // keys with a free slot in their chain
  Pending* evict;          // keys without
  Pending* contest_fill;   // of fill: lost the free slots to other new keys
  Pending* contest_evict;  // of evict: another new key took the bucket first
  int64_t* evicted_key;    // [place]
  int64_t* evicted_slot;   // [place] -1: none
  uint64_t* evicted_score;
  int32_t* evicted_table;
  uint8_t* missed;  // [index] 1: absent when the call began
};
constexpr unsigned kNumLocks = 1u << 18;
constexpr unsigned kNumMarks = 1u << 25;  // 4 MB a set of marks: they stay in L2
constexpr int64_t kScratchBytesPerKey =
    4 * sizeof(Pending) + 3 * sizeof(int64_t) + sizeof(int32_t) + 1;

struct InsertOutputs {
  int64_t* slots;
  uint8_t* is_new;  // may be null
  EvictedKeys evicted;
};

Status LaunchFind(const Batch& batch, int64_t* slots, cudaStream_t stream);
Status LaunchFindAndCopy(const Batch& batch, const RowBlock* rows, int64_t dim,
                         const float* absent_row, float* out, int64_t* slots,
                         cudaStream_t stream);
Status LaunchInsert(const Batch& batch, const InsertOutputs& outputs,
                    int64_t* size_counters, int64_t* rejected_counters,
                    cudaStream_t stream);
Status LaunchInsertAndEvict(const Batch& batch, Eviction eviction,
                            const InsertOutputs& outputs,
                            const Scratch& scratch, int64_t* size_counters,
                            int64_t* rejected_counters, int num_processors,
                            cudaStream_t stream);
Status LaunchErase(const Batch& batch, int64_t* slots, int64_t* size_counters,
                   cudaStream_t stream);
Status LaunchTouch(const Batch& batch, const int64_t* slots, Eviction eviction,
                   const CallState* state, cudaStream_t stream);
Status LaunchClear(const TableView& view, cudaStream_t stream);
Status LaunchExport(const TableView& view, int64_t first_slot,
                    int64_t num_slots, Eviction eviction,
                    const ExportedKeys& out, cudaStream_t stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_TABLE_GPU_LAUNCH_CUH_

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

// A key that found no slot yet in this call. index: its place in the batch, or -1
// once another key's warp carries it.
struct Pending {
  int64_t key;
  int32_t table;
  int32_t index;
};

// What the kernels of one evicting call share, in device memory.
struct CallState {
  unsigned long long call;  // number of this call, from 1
  int num_fill;             // length of the fill list
  int num_evict;            // length of the evict list
  int must_verify;          // some slot that was given may have been lost again
};

struct Scratch {
  CallState* state;
  unsigned* locks;        // [kNumLocks]
  Pending* fill;          // [max_keys] keys with a free slot in their chain
  Pending* evict;         // [max_keys] keys without; then what they evicted
  int64_t* evicted_slot;  // [max_keys] beside evict; -1: evicted nothing
  uint64_t* evicted_score;
  uint8_t* missed;        // [max_keys] 1: absent when the call began
};
constexpr unsigned kNumLocks = 1u << 20;  // 4 MB: they stay in L2

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

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernel launchers of table_set.cu. All of them only enqueue.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_LAUNCH_CUH_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_LAUNCH_CUH_

#include <cuda_runtime.h>

#include "addons/hierarchical_parameter_server/cache/table/table_set.h"
#include "addons/hierarchical_parameter_server/cache/table/table_size.h"
#include "addons/hierarchical_parameter_server/cache/table/warp_probe.cuh"
#include "kernels/engine/base/status.h"

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
  // in the batch; -1: a displaced key, which another key's tile carries without
  // knowing its occurrences
  int32_t index;
  uint16_t free;    // slots of its bucket that were seen free
  uint16_t probes;  // position of that bucket in the key's chain
};

// The counters of one evicting call.
struct CallState {
  unsigned long long call;  // number of the call, from 1
  int num_pending;
  int num_contest_fill;
  int num_contest_evict;
  int num_stale;  // not zero: some bucket is marked stale
};

struct Scratch {
  CallState* state;
  unsigned* locks;  // [kNumLocks] one bit of each word is used
  // Marks of buckets, [num_marks / 32] each, one after the other.
  uint32_t num_marks;  // a power of two
  unsigned* filled;    // Seek took the last free slot
  unsigned* claimed;   // Evict took the slot of an old key
  // a key left whose slot this call may have returned already
  unsigned* stale;
  // The following have [max_keys] entries each.
  Pending* pending;  // keys that Seek could not place
  // of these: other keys compete for the same free slots
  Pending* contest_fill;
  // of these: other keys compete for the same old keys' slots
  Pending* contest_evict;
  uint8_t* missed;  // [index] 1: absent when the call began
};
static_assert(kCounterBytes == 2 * kStripes * kStripeInts * sizeof(int64_t),
              "two counters of a table");
static_assert(kScratchBytesPerKey == 3 * sizeof(Pending) + 1,
              "three lists and a byte");

// Waits for the previous kernel of a chain, during which this one may be
// launched already; that saves most of the launch latency. On devices without
// this feature the launch itself waits, and this does nothing.
__device__ __forceinline__ void WaitForPreviousKernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// Launches a kernel that starts with WaitForPreviousKernel.
template <typename... Parameters, typename... Arguments>
cudaError_t LaunchChained(void (*kernel)(Parameters...), unsigned blocks,
                          bool overlap, cudaStream_t stream,
                          Arguments... arguments) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kBlock);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = overlap ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
}

struct DeviceInfo {
  int num_processors;
  bool overlaps_kernels;  // evicting kernels were compiled with the wait
};

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
                            int64_t* rejected_counters,
                            const DeviceInfo& device, cudaStream_t stream);
Status LaunchErase(const Batch& batch, Eviction eviction, int64_t* slots,
                   int64_t* size_counters, cudaStream_t stream);
// Sets *wait: whether the code of the evicting kernels that this device runs
// was compiled with the wait that LaunchChained relies on.
Status EvictingKernelsWait(bool* wait);
Status LaunchTouch(const Batch& batch, const int64_t* slots, Eviction eviction,
                   const CallState* state, cudaStream_t stream);
Status LaunchClear(const TableView& view, cudaStream_t stream);
Status LaunchExport(const TableView& view, int64_t first_slot,
                    int64_t num_slots, Eviction eviction,
                    const ExportedKeys& out, cudaStream_t stream);

}  // namespace gpu
}  // namespace ev

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_LAUNCH_CUH_

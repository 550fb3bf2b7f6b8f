// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What a cache does on the device besides the table's own calls. All pointers
// are device memory; all calls enqueue on the stream and do nothing for a count
// of 0. A row is `width` floats, and rows that are copied lie at multiples of
// their length from 16-byte aligned memory.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_CACHE_KERNELS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_CACHE_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/engine/base/status.h"

namespace hps {

// Numbers of a table, in device memory.
struct CacheCounters {
  unsigned long long inserted, evicted, refreshed, erased;
};

// Whether the device can run this code: FailedPrecondition.
ev::Status CheckDeviceRunsCache();

ev::Status WidenIds(const int32_t* ids, int64_t count, int64_t* keys,
                    cudaStream_t stream);

// Bit i % 32 of bits[i / 32]: slots[i] is none. Bits behind count are 0.
ev::Status MissBits(const int64_t* slots, int64_t count, uint32_t* bits,
                    cudaStream_t stream);

// out[positions[i], :] = staged[i, :].
ev::Status ScatterRows(const float* staged, const int64_t* positions,
                       int64_t count, int width, float* out,
                       cudaStream_t stream);

// rows[slots[i], :] = staged[sources[i], :] where is_new[i]; counts these, and
// what *evicted says (null: nothing).
ev::Status StoreNewRows(const float* staged, const int32_t* sources,
                        const int64_t* slots, const uint8_t* is_new,
                        int64_t count, int width, const int64_t* evicted,
                        float* rows, CacheCounters* counters,
                        cudaStream_t stream);

// rows[slots[i], :] = staged[sources[i], :] where slots[i] is one; counts
// these. sources null: sources[i] is i.
ev::Status RefreshRows(const float* staged, const int32_t* sources,
                       const int64_t* slots, int64_t count, int width,
                       float* rows, CacheCounters* counters,
                       cudaStream_t stream);

// Counts keys that were erased from slots.
ev::Status CountErased(const int64_t* slots, int64_t count,
                       CacheCounters* counters, cudaStream_t stream);
// All rows that there were are erased.
ev::Status CountCleared(CacheCounters* counters, cudaStream_t stream);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_CACHE_KERNELS_H_

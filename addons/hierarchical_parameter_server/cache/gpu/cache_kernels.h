// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// CUDA kernels of a cache, besides those of the engine's hash table. All
// pointers are device memory. All calls only enqueue work on the stream and are
// no-ops for a count of 0. A row is `width` floats. Copied rows start at
// multiples of their size from 16-byte aligned memory.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_CACHE_KERNELS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_CACHE_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "addons/hierarchical_parameter_server/rows/row_format.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Counters of one table, in device memory.
struct CacheCounters {
  unsigned long long inserted, evicted, refreshed, erased;
};

// FailedPrecondition: this GPU cannot run the cache's kernels.
ev::Status CheckDeviceRunsCache();

ev::Status WidenIds(const int32_t* ids, int64_t count, int64_t* keys,
                    cudaStream_t stream);

// Sets bit i % 32 of bits[i / 32] if slots[i] is a miss. Bits at `count` and
// above are 0.
ev::Status MissBits(const int64_t* slots, int64_t count, uint32_t* bits,
                    cudaStream_t stream);

// out[positions[i], :] = staged[i, :].
ev::Status ScatterRows(const float* staged, const int64_t* positions,
                       int64_t count, int width, float* out,
                       cudaStream_t stream);

// The same for packed rows: writes float32 rows of format.dim. positions may be
// null: i. REQUIRES: format.is_packed().
ev::Status UnpackRowsTo(const RowFormat& format, const float* staged,
                        const int64_t* positions, int64_t count, float* out,
                        cudaStream_t stream);

// rows[slots[i], :] = staged[sources[i], :] where is_new[i]. Adds the number of
// these rows to counters->inserted, and *evicted (if not null) to
// counters->evicted.
ev::Status StoreNewRows(const float* staged, const int32_t* sources,
                        const int64_t* slots, const uint8_t* is_new,
                        int64_t count, int width, const int64_t* evicted,
                        float* rows, CacheCounters* counters,
                        cudaStream_t stream);

// rows[slots[i], :] = staged[sources[i], :] where slots[i] is valid; adds their
// number to counters->refreshed. If sources is null, sources[i] is i.
ev::Status RefreshRows(const float* staged, const int32_t* sources,
                       const int64_t* slots, int64_t count, int width,
                       float* rows, CacheCounters* counters,
                       cudaStream_t stream);

// Adds the number of valid slots to counters->erased.
ev::Status CountErased(const int64_t* slots, int64_t count,
                       CacheCounters* counters, cudaStream_t stream);
// Counts all rows of the table as erased.
ev::Status CountCleared(CacheCounters* counters, cudaStream_t stream);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_CACHE_KERNELS_H_

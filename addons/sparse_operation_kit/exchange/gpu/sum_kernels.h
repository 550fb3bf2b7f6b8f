// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that sum gradients of pooled rows into one gradient per key of a
// route. All tables of a call are grouped by one sort. Pointers are device
// memory.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_SUM_KERNELS_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_SUM_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "addons/sparse_operation_kit/exchange/wire_type.h"
#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace sok {
namespace gpu {

// One table of a route and the gradients of its samples.
struct SummedTable {
  const int32_t* offsets = nullptr;  // [B + 1]
  const int32_t* inverse = nullptr;  // [N] into the keys, or into places
  const int32_t* places = nullptr;   // [U] into the keys, or null
  const int64_t* starts = nullptr;   // [W + 1]: rank r's first key
  const int64_t* chunks = nullptr;   // [W]: start of the sums, in numbers
  const float* grads = nullptr;      // [B, dim], of grad_type
  ev::FloatType grad_type = ev::FloatType::kFloat32;
  const float* factors = nullptr;  // [B], or null: ones
  float* long_sums = nullptr;      // ev::gpu::LongSumBytes, scratch
  int64_t first_id = 0;            // among all ids of the call
  int64_t first_key = 0;           // among all keys of the call
  int64_t num_ids = 0;
  int64_t num_keys = 0;
  int64_t num_samples = 0;
  int64_t dim = 0;
  // Whether the offsets of gradients, rows and chunks are multiples of four.
  bool by_fours = false;
};

// All tables of a call.
struct SummedTables {
  const SummedTable* tables = nullptr;
  int64_t num_tables = 0;  // at most kMostOfOneLaunch
  int64_t most_ids = 0;    // of the longest table
  int64_t most_sums = 0;   // numbers, of the longest table
  int64_t num_ids = 0;     // at most 2^30
  int64_t num_keys = 0;
  int64_t most_long_blocks = 0;  // for keys that occur very often
};
// Adds a table's num_ids, num_keys and dim to the totals.
void AddTable(const SummedTable& table, SummedTables* all);

// Scratch memory for grouping.
struct GroupScratch {
  uint32_t* keys = nullptr;         // [N]
  uint32_t* sorted_keys = nullptr;  // [N]
  int32_t* samples = nullptr;       // [N]
  char* sort = nullptr;             // SortScratchBytes
  size_t sort_bytes = 0;
};
ev::Status SortScratchBytes(int64_t num_ids, int64_t num_keys, size_t* bytes);

// Groups the samples by key. samples [N]: samples of key 0, 1, ... of the first
// table, then of the next; those of one key in the order of its occurrences.
// ends [U]: end of each key's samples, from 0 in each table. REQUIRES that
// every key occurs.
ev::Status LaunchGroupRoute(const SummedTables& all,
                            const GroupScratch& scratch, int32_t* ends,
                            int32_t* samples, ev::gpu::StreamView stream);

// Writes the sum of every key, added in the order of its occurrences, to the
// message as 'wire'. Launches two kernels.
ev::Status LaunchSumRoute(const SummedTables& all, const int32_t* ends,
                          const int32_t* samples, WireType wire, char* message,
                          ev::gpu::StreamView stream);

}  // namespace gpu
}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_SUM_KERNELS_H_

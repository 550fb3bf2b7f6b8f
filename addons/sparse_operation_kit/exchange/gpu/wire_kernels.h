// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Numbers between ranks, in the memory of the device: to and from their wire
// type, and pooled. Every call enqueues one kernel, or none where there is
// nothing to do. Pointers are device memory.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_WIRE_KERNELS_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_WIRE_KERNELS_H_

#include <cstdint>

#include "addons/sparse_operation_kit/exchange/exchange_device.h"
#include "addons/sparse_operation_kit/exchange/wire_type.h"
#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/combine/combiner.h"

namespace sok {
namespace gpu {

constexpr int64_t kMostOfOneLaunch = 65535;  // chunks, or tables

ev::Status LaunchToWire(const float* from, int64_t count, WireType wire,
                        char* to, ev::gpu::StreamView stream);

// num_chunks of at most kMostOfOneLaunch; most: numbers of the longest. What
// comes out is what was on the wire times 'scale'.
ev::Status LaunchFromWire(const char* from, WireType wire,
                          const WireChunk* chunks, int64_t num_chunks,
                          int64_t most, float scale, float* to,
                          ev::gpu::StreamView stream);

// One table of a route. The rows of its keys are in chunks, one per rank.
struct PooledTable {
  const int32_t* offsets = nullptr;  // [B + 1]
  const int32_t* inverse = nullptr;  // [N] into the keys, or into places
  const int32_t* places = nullptr;   // [U] into the keys, or null
  const int64_t* starts = nullptr;   // [W + 1]: keys of rank r are [starts[r],
  const int64_t* chunks = nullptr;   // [W]: the rows' place, in numbers
  float* out = nullptr;              // [B, dim]
  int64_t num_samples = 0;           // B
  int64_t dim = 0;
  ev::Combiner combiner = ev::Combiner::kSum;
  // Whether rows and chunks are multiples of four numbers.
  bool by_fours = false;
};

// num_tables of at most kMostOfOneLaunch; most: numbers of the longest output.
ev::Status LaunchPoolReceived(const PooledTable* tables, int64_t num_tables,
                              int64_t most, const char* rows, WireType wire,
                              ev::gpu::StreamView stream);

}  // namespace gpu
}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_WIRE_KERNELS_H_

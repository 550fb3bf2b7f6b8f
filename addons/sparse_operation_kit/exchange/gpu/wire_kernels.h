// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that convert numbers to and from their wire type and pool received
// rows. Each call enqueues one kernel, or none if there is nothing to do.
// Pointers are device memory.

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

constexpr int64_t kMostOfOneLaunch = 65535;  // chunks or tables

ev::Status LaunchToWire(const float* from, int64_t count, WireType wire,
                        char* to, ev::gpu::StreamView stream);

// num_chunks: at most kMostOfOneLaunch. most: numbers in the longest chunk.
// Multiplies by 'scale' after conversion.
ev::Status LaunchFromWire(const char* from, WireType wire,
                          const WireChunk* chunks, int64_t num_chunks,
                          int64_t most, float scale, float* to,
                          ev::gpu::StreamView stream);

// One table of a route. The rows of its keys are in one chunk per rank.
struct PooledTable {
  const int32_t* offsets = nullptr;  // [B + 1]
  const int32_t* inverse = nullptr;  // [N] into the keys, or into places
  const int32_t* places = nullptr;   // [U] into the keys, or null
  const int64_t* starts = nullptr;   // [W + 1]: rank r's first key
  const int64_t* chunks = nullptr;   // [W]: start of the rows, in numbers
  void* out = nullptr;               // [B, dim], of out_type
  ev::FloatType out_type = ev::FloatType::kFloat32;
  int64_t num_samples = 0;  // B
  int64_t dim = 0;
  ev::Combiner combiner = ev::Combiner::kSum;
  // Whether the offsets of rows and chunks are multiples of four.
  bool by_fours = false;
};

// num_tables: at most kMostOfOneLaunch. most: numbers in the longest output.
ev::Status LaunchPoolReceived(const PooledTable* tables, int64_t num_tables,
                              int64_t most, const char* rows, WireType wire,
                              ev::gpu::StreamView stream);

}  // namespace gpu
}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_WIRE_KERNELS_H_

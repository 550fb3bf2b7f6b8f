// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that pack tensors into one block of device memory, unpack sums from
// it, and fill buffers of failed transfers. Each call enqueues one kernel.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_NCCL_REDUCE_KERNELS_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_NCCL_REDUCE_KERNELS_H_

#include <cstdint>

#include "addons/sparse_operation_kit/exchange/carrier/reduction.h"
#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace sok {

// Alignment of pieces in the block, in bytes.
constexpr int64_t kFusedAlign = 16;

// Pointers are device memory.
struct FusedPiece {
  const char* from = nullptr;
  char* to = nullptr;
  int64_t at = 0;  // offset in the block
  int64_t bytes = 0;
};

struct FusedBlock {
  const FusedPiece* pieces = nullptr;  // in device memory
  int64_t num_pieces = 0;
  int64_t most = 0;  // bytes of the longest
};

// Copies the pieces into the block.
ev::Status LaunchFuse(const FusedBlock& block, char* fused,
                      ev::gpu::StreamView stream);
// Copies the block, times 'scale', to the pieces. 16-bit numbers are scaled in
// float32.
ev::Status LaunchSpread(const FusedBlock& block, const char* fused,
                        ReducedType type, double scale,
                        ev::gpu::StreamView stream);

// Fills [to, to + bytes) with 'byte' if *flag (device memory) is not 0 when the
// kernel runs.
ev::Status LaunchFillIf(const int32_t* flag, char* to, int64_t bytes, int byte,
                        ev::gpu::StreamView stream);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_NCCL_REDUCE_KERNELS_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tensors into one block of device memory, and sums out of it; and what comes
// into the place of bytes that never came. Every call enqueues one kernel.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_NCCL_REDUCE_KERNELS_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_NCCL_REDUCE_KERNELS_H_

#include <cstdint>

#include "addons/sparse_operation_kit/exchange/carrier/reduction.h"
#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace sok {

// Where pieces begin in the block, in bytes.
constexpr int64_t kFusedAlign = 16;

// In device memory.
struct FusedPiece {
  const char* from = nullptr;
  char* to = nullptr;
  int64_t at = 0;  // in the block
  int64_t bytes = 0;
};

struct FusedBlock {
  const FusedPiece* pieces = nullptr;  // in device memory
  int64_t num_pieces = 0;
  int64_t most = 0;  // bytes of the longest
};

// What the pieces are, into the block.
ev::Status LaunchFuse(const FusedBlock& block, char* fused,
                      ev::gpu::StreamView stream);
// What is in the block times 'scale', to where the pieces are. A number of 16
// bits is scaled as float32.
ev::Status LaunchSpread(const FusedBlock& block, const char* fused,
                        ReducedType type, double scale,
                        ev::gpu::StreamView stream);

// Fills the bytes where *flag, in device memory, is not 0 when the kernel runs.
ev::Status LaunchFillIf(const int32_t* flag, char* to, int64_t bytes, int byte,
                        ev::gpu::StreamView stream);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_NCCL_REDUCE_KERNELS_H_

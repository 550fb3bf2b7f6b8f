// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The kernel that pools rows given by their handles, for
// GpuRowCompute::StartPool.

#ifndef KERNELS_ENGINE_ROWS_GPU_POOL_ROWS_H_
#define KERNELS_ENGINE_ROWS_GPU_POOL_ROWS_H_

#include <cstdint>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/rows/gpu/row_pieces.h"

namespace ev {
namespace gpu {

// The arrays of a DevicePooling, in device memory.
struct PoolRowsBatch {
  PiecesView rows;
  const float* defaults = nullptr;  // [R, dim]
  const RowHandle* names = nullptr;
  const int32_t* inverse = nullptr;
  const int32_t* offsets = nullptr;
  int64_t num_samples = 0;
  int64_t dim = 0;
  Combiner combiner = Combiner::kSum;
};

// out [B, dim]. Enqueues one kernel, none for an empty batch.
Status LaunchPoolRows(const PoolRowsBatch& batch, float* out,
                      StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_POOL_ROWS_H_

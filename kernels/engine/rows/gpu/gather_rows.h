// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows of many tables into memory of the device, for
// GpuTableCompute::StartGather.

#ifndef KERNELS_ENGINE_ROWS_GPU_GATHER_ROWS_H_
#define KERNELS_ENGINE_ROWS_GPU_GATHER_ROWS_H_

#include <cstdint>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/gpu/row_pieces.h"

namespace ev {
namespace gpu {

// DeviceGather in device memory.
struct GatherPart {
  PiecesView rows;
  const float* defaults = nullptr;  // [R, dim]
  const RowHandle* names = nullptr;
  const int32_t* inverse = nullptr;  // of the row in names; null: it is i
  float* out = nullptr;
  int64_t num_rows = 0;
  int64_t dim = 0;
};

// parts: [num_parts] in device memory; most_floats: of the longest of them.
// Enqueues a kernel for each 65535 parts.
Status LaunchGatherRows(const GatherPart* parts, int64_t num_parts,
                        int64_t most_floats, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_GATHER_ROWS_H_

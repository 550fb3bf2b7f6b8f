// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Device helpers: a grid-stride loop over elements, and the address of a row.

#ifndef KERNELS_ENGINE_ROWS_GPU_ROW_AT_CUH_
#define KERNELS_ENGINE_ROWS_GPU_ROW_AT_CUH_

#include <algorithm>
#include <cstdint>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/rows/gpu/row_pieces.h"

namespace ev {
namespace gpu {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 20;

inline int BlocksFor(int64_t n) {
  return static_cast<int>(std::min(kMaxBlocks, (n + kThreads - 1) / kThreads));
}

__device__ __forceinline__ int64_t FirstIndex() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}
__device__ __forceinline__ int64_t IndexStep() {
  return static_cast<int64_t>(gridDim.x) * kThreads;
}

__device__ __forceinline__ float* RowAt(const PiecesView& rows,
                                        RowHandle handle) {
  const RowHandle within = handle & ((RowHandle{1} << rows.rows_log2) - 1);
  return rows.pieces[handle >> rows.rows_log2] + within * rows.stride;
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_ROW_AT_CUH_

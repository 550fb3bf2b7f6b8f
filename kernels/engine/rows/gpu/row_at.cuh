// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Device helpers: a grid-stride loop over elements, and the place and address
// of a row.

#ifndef KERNELS_ENGINE_ROWS_GPU_ROW_AT_CUH_
#define KERNELS_ENGINE_ROWS_GPU_ROW_AT_CUH_

#include <algorithm>
#include <cstdint>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/rows/gpu/row_pieces.h"
#include "kernels/engine/rows/gpu/row_places.h"

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

// Returns a row's place (row_places.h).
__device__ __forceinline__ uint32_t PlaceOf(const PlacesView& placed,
                                            RowHandle handle) {
  if (placed.places == nullptr) return handle;
  return handle ^
         placed
             .places[handle >> kPlacesLog2][handle & ((1u << kPlacesLog2) - 1)];
}

__device__ __forceinline__ float* AtPlace(const PiecesView& rows,
                                          uint32_t place) {
  const uint32_t within = place & ((1u << rows.rows_log2) - 1);
  return rows.pieces[place >> rows.rows_log2] + within * rows.stride;
}

__device__ __forceinline__ float* RowAt(const PiecesView& rows,
                                        RowHandle handle) {
  return AtPlace(rows, PlaceOf(rows.placed, handle));
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_ROW_AT_CUH_

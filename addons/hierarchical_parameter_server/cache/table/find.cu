// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Finds keys, optionally copying their rows.

#include "addons/hierarchical_parameter_server/cache/table/launch.cuh"
#include "kernels/engine/base/gpu/cuda_error.h"

namespace ev {
namespace gpu {
namespace {

template <bool kOneTable>
__global__ void __launch_bounds__(kBlock)
    FindKernel(Batch batch, int64_t* __restrict__ slots) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  const bool mine = i < batch.num_keys;
  const int64_t key = mine ? __ldcs(batch.keys + i) : 0;
  TableView view = batch.only;
  if (!kOneTable && mine) {
    view = batch.views[BatchTable<kOneTable>(batch, i)];
  }
  const int64_t slot = FindInWarp<Slots::kFrozen>(view, key, mine);
  if (mine) __stcs(slots + i, slot);
}

// Loads 16 bytes of a row, or 4 if 16 do not divide the row.
template <typename Piece>
__device__ __forceinline__ Piece LoadRowPiece(const Piece* p) {
  return __ldg(p);
}

// Copies the rows of the warp's 32 keys; each lane has the address of one. The
// pieces of the 32 output rows are one run of memory: lane l copies piece l,
// then l + 32, ..., eight in flight. kPieces: pieces per row, 0 if not a
// constant.
template <typename Piece, int kPieces>
__device__ __forceinline__ void CopyRowsInWarp(const Piece* row, int num_rows,
                                               int pieces, Piece* out) {
  const int lane = threadIdx.x & (kWarp - 1);
  const int per_row = kPieces > 0 ? kPieces : pieces;
  const int total = num_rows * per_row;
  constexpr int kInFlight = 8;
  const unsigned long long address = reinterpret_cast<unsigned long long>(row);
  for (int base = 0; base < kWarp * per_row; base += kWarp * kInFlight) {
    Piece v[kInFlight];
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      const int piece = base + u * kWarp + lane;
      const int source = piece / per_row;  // above 31 only past the end
      const Piece* from = reinterpret_cast<const Piece*>(
          __shfl_sync(kAllLanes, address, source & (kWarp - 1)));
      v[u] = Piece();
      if (piece < total && from != nullptr) {
        v[u] = LoadRowPiece(from + piece % per_row);
      }
    }
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      const int piece = base + u * kWarp + lane;
      if (piece < total) __stcs(out + piece, v[u]);
    }
  }
}

template <bool kOneTable, typename Piece, int kPieces>
__global__ void __launch_bounds__(kBlock)
    FindAndCopyKernel(Batch batch, const RowBlock* __restrict__ rows,
                      int pieces, const float* absent_row, float* out,
                      int64_t* slots) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  const bool mine = i < batch.num_keys;
  const int64_t key = mine ? __ldcs(batch.keys + i) : 0;
  int t = 0;
  TableView view = batch.only;
  if (!kOneTable && mine) {
    t = BatchTable<kOneTable>(batch, i);
    view = batch.views[t];
  }
  const int64_t slot = FindInWarp<Slots::kFrozen>(view, key, mine);
  if (mine && slots != nullptr) __stcs(slots + i, slot);

  const float* row = absent_row;
  if (slot >= 0) {
    const RowBlock block = rows[t];
    row = block.base + slot * block.stride;
  }
  const int lane = threadIdx.x & (kWarp - 1);
  const int64_t first = i - lane;
  const int64_t left = batch.num_keys - first;
  const int num_rows = left >= kWarp ? kWarp
                       : left > 0    ? static_cast<int>(left)
                                     : 0;
  const int per_row = kPieces > 0 ? kPieces : pieces;
  CopyRowsInWarp<Piece, kPieces>(
      reinterpret_cast<const Piece*>(row), num_rows, pieces,
      reinterpret_cast<Piece*>(out) + first * per_row);
}

template <typename Piece, int kPieces>
void FindAndCopy(const Batch& batch, const RowBlock* rows, int pieces,
                 const float* absent_row, float* out, int64_t* slots,
                 cudaStream_t stream) {
  const unsigned blocks = BlocksFor(batch.num_keys);
  if (batch.num_tables == 1) {
    FindAndCopyKernel<true, Piece, kPieces><<<blocks, kBlock, 0, stream>>>(
        batch, rows, pieces, absent_row, out, slots);
  } else {
    FindAndCopyKernel<false, Piece, kPieces><<<blocks, kBlock, 0, stream>>>(
        batch, rows, pieces, absent_row, out, slots);
  }
}

}  // namespace

Status LaunchFind(const Batch& batch, int64_t* slots, cudaStream_t stream) {
  const unsigned blocks = BlocksFor(batch.num_keys);
  if (batch.num_tables == 1) {
    FindKernel<true><<<blocks, kBlock, 0, stream>>>(batch, slots);
  } else {
    FindKernel<false><<<blocks, kBlock, 0, stream>>>(batch, slots);
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("FindKernel");
  return Status::OK();
}

Status LaunchFindAndCopy(const Batch& batch, const RowBlock* rows, int64_t dim,
                         const float* absent_row, float* out, int64_t* slots,
                         cudaStream_t stream) {
  const int d = static_cast<int>(dim);
  if (d % 4 != 0) {
    FindAndCopy<float, 0>(batch, rows, d, absent_row, out, slots, stream);
  } else {
    switch (d / 4) {
      case 2:
        FindAndCopy<float4, 2>(batch, rows, 2, absent_row, out, slots, stream);
        break;
      case 4:
        FindAndCopy<float4, 4>(batch, rows, 4, absent_row, out, slots, stream);
        break;
      case 8:
        FindAndCopy<float4, 8>(batch, rows, 8, absent_row, out, slots, stream);
        break;
      case 16:
        FindAndCopy<float4, 16>(batch, rows, 16, absent_row, out, slots,
                                stream);
        break;
      case 32:
        FindAndCopy<float4, 32>(batch, rows, 32, absent_row, out, slots,
                                stream);
        break;
      default:
        FindAndCopy<float4, 0>(batch, rows, d / 4, absent_row, out, slots,
                               stream);
    }
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("FindAndCopyKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

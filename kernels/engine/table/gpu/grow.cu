// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Splits pairs, which makes a table larger.

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/table/gpu/launch.cuh"

namespace ev {
namespace gpu {
namespace {

constexpr int kPerThread = 4;  // of two slots each, all in flight

// Splits pairs [view.split, view.split + num_pairs), each slot independently: a
// key moves to its place in the other half or stays. pieces: of two slots.
// Reads and writes two or three runs of memory.
template <bool kScores>
__global__ void __launch_bounds__(kBlock)
    SplitKernel(TableView view, int64_t pieces, int64_t distance) {
  constexpr int64_t kPairPieces = kBucketSlots;
  const int lane = threadIdx.x & (kWarp - 1);
  const int tile_base = lane & ~(kTile - 1);
  longlong2* const keys =
      reinterpret_cast<longlong2*>(view.keys) + view.split * kPairPieces;
  ulonglong2* const scores =
      reinterpret_cast<ulonglong2*>(view.scores) + view.split * kPairPieces;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kBlock * kPerThread;
  for (int64_t block = static_cast<int64_t>(blockIdx.x) * kBlock * kPerThread;
       block < pieces; block += stride) {
    longlong2 v[kPerThread];
    ulonglong2 s[kPerThread];
#pragma unroll
    for (int u = 0; u < kPerThread; ++u) {
      const int64_t i = block + u * kBlock + threadIdx.x;
      v[u] = make_longlong2(0, 0);
      s[u] = make_ulonglong2(0, 0);
      if (i < pieces) {
        v[u] = __ldcs(keys + i);
        if (kScores) s[u] = __ldcs(scores + i);
      }
    }
#pragma unroll
    for (int u = 0; u < kPerThread; ++u) {
      const int64_t i = block + u * kBlock + threadIdx.x;
      const bool mine = i < pieces;
      const uint32_t parity = (i / kTile) & 1;
      const int64_t empty = EmptyMark(parity), erased = ErasedMark(parity);
      const bool ex = v[u].x == empty, ey = v[u].y == empty;
      const unsigned empties = __ballot_sync(kAllLanes, mine && (ex || ey));
      if (!mine) continue;
      // Both halves keep the mark of the bucket, since keys may be beyond
      // either.
      const bool has_empty = ((empties >> tile_base) & 0xFF) != 0;
      const int64_t free = has_empty ? empty : erased;
      const uint32_t pair = view.split + static_cast<uint32_t>(i / kPairPieces);
      const bool x = !ex && v[u].x != erased &&
                     LeavesWhenSplit(MixKey(v[u].x), view, pair);
      const bool y = !ey && v[u].y != erased &&
                     LeavesWhenSplit(MixKey(v[u].y), view, pair);
      __stcs(keys + i + distance,
             make_longlong2(x ? v[u].x : free, y ? v[u].y : free));
      if (kScores) {
        __stcs(scores + i + distance,
               make_ulonglong2(x ? s[u].x : 0, y ? s[u].y : 0));
      }
      if (!x && !y) continue;
      __stcs(keys + i, make_longlong2(x ? free : v[u].x, y ? free : v[u].y));
      if (kScores) {  // a free slot's count is zero
        __stcs(scores + i, make_ulonglong2(x ? 0 : s[u].x, y ? 0 : s[u].y));
      }
    }
  }
}

}  // namespace

Status LaunchSplit(const TableView& view, uint32_t num_pairs,
                   cudaStream_t stream) {
  const int64_t pieces = static_cast<int64_t>(num_pairs) * kBucketSlots;
  const int64_t distance =
      static_cast<int64_t>(DoublingPairs(view)) * kBucketSlots;
  const unsigned all = BlocksFor((pieces + kPerThread - 1) / kPerThread);
  const unsigned blocks = all < 16384u ? all : 16384u;
  if (view.scores != nullptr) {
    SplitKernel<true><<<blocks, kBlock, 0, stream>>>(view, pieces, distance);
  } else {
    SplitKernel<false><<<blocks, kBlock, 0, stream>>>(view, pieces, distance);
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("SplitKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

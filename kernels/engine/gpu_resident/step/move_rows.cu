// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/gpu_resident/step/move_rows.h"
#include "kernels/engine/gpu_resident/table/warp_probe.cuh"
#include "kernels/engine/gpu_step/step_plan.cuh"

namespace ev {
namespace gpu {
namespace {

constexpr int kWarps = kStepBlock / kWarp;
constexpr int kInFlight = 8;

// A warp takes the 32 slots of a pair; of the keys that are there it copies the
// rows, a run of 16-byte pieces after the other.
__global__ void __launch_bounds__(kStepBlock)
    MoveRowsKernel(const TableView* __restrict__ view, Growth growth,
                   float* rows, int64_t stride) {
  __shared__ uint8_t taken[kWarps][kWarp];
  const int lane = threadIdx.x & (kWarp - 1);
  const int warp = threadIdx.x / kWarp;
  const uint32_t per_row = static_cast<uint32_t>(stride / 4);
  const int64_t* const keys = view->keys;
  const int64_t end = growth.first_slot + growth.num_slots;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kWarps * kWarp;
  for (int64_t first =
           growth.first_slot +
           (static_cast<int64_t>(blockIdx.x) * kWarps + warp) * kWarp;
       first < end; first += step) {
    const uint32_t parity = lane / kBucketSlots;
    const int64_t key = __ldcs(keys + first + lane);
    const bool live = key != EmptyMark(parity) && key != ErasedMark(parity);
    const unsigned mask = __ballot_sync(kAllLanes, live);
    if (live) taken[warp][__popc(mask & ((1u << lane) - 1))] = lane;
    __syncwarp();
    const uint32_t pieces = __popc(mask) * per_row;
    for (uint32_t base = lane; base < pieces; base += kWarp * kInFlight) {
      float4 v[kInFlight];
      float4* to[kInFlight];
#pragma unroll
      for (int u = 0; u < kInFlight; ++u) {
        const uint32_t piece = base + u * kWarp;
        if (piece >= pieces) continue;
        const int64_t slot = first + taken[warp][piece / per_row];
        to[u] =
            reinterpret_cast<float4*>(rows + slot * stride) + piece % per_row;
        v[u] = __ldcs(reinterpret_cast<const float4*>(
                          rows + (slot - growth.distance) * stride) +
                      piece % per_row);
      }
#pragma unroll
      for (int u = 0; u < kInFlight; ++u) {
        if (base + u * kWarp < pieces) __stcs(to[u], v[u]);
      }
    }
    __syncwarp();
  }
}

}  // namespace

Status LaunchMoveRows(const TableView* view, const Growth& growth, float* rows,
                      int64_t stride, int num_processors, StreamView stream) {
  const int64_t all = (growth.num_slots + kStepBlock - 1) / kStepBlock;
  const int64_t resident = int64_t{num_processors} * 8;
  MoveRowsKernel<<<static_cast<unsigned>(all < resident ? all : resident),
                   kStepBlock, 0, stream.get()>>>(view, growth, rows, stride);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("MoveRowsKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

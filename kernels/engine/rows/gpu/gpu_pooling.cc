// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// GpuRows::StartPool: copies handles, inverse and offsets to the GPU as one
// block, pools, and copies the output to the host, directly if it is in pinned
// memory. An output in GPU memory is written by the kernel. StartPool does not
// wait for the GPU; DeviceWork::Wait does.

#include <cuda_runtime_api.h>

#include <memory>
#include <utility>

#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/pinned_memory.h"
#include "kernels/engine/base/gpu/work_lane.h"
#include "kernels/engine/rows/gpu/gpu_rows.h"
#include "kernels/engine/rows/gpu/lane_work.h"
#include "kernels/engine/rows/gpu/pool_rows.h"

namespace ev {
namespace gpu {

Status GpuRows::StartPool(const DevicePooling& pooling, float* out,
                          std::unique_ptr<DeviceWork>* work) {
  EV_RETURN_IF_ERROR(broken_);
  EV_RETURN_IF_ERROR(Flush());
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const int64_t samples = static_cast<int64_t>(pooling.offsets.size()) - 1;
  const size_t out_bytes = samples * dim_ * sizeof(float);
  if (out_bytes == 0) return Status::OK();
  const bool stays = pooling.stream != nullptr;
  if (stays) EV_RETURN_IF_ERROR(CheckIsOn(device_, out, "the output"));
  Parts up;
  const size_t names_at = up.Add(pooling.rows);
  const size_t inverse_at = up.Add(pooling.inverse);
  const size_t offsets_at = up.Add(pooling.offsets);
  const size_t out_at = up.bytes();
  const bool direct = !stays && IsPinned(out);
  const bool is_staged = !stays && !direct;
  std::unique_ptr<WorkLane> lane;
  EV_RETURN_IF_ERROR(WorkLane::Acquire(out_at + (is_staged ? out_bytes : 0),
                                       out_at + (stays ? 0 : out_bytes),
                                       &lane));
  EV_RETURN_IF_ERROR(Follow(lane->stream()));
  Put(pooling.rows, names_at, lane.get());
  Put(pooling.inverse, inverse_at, lane.get());
  Put(pooling.offsets, offsets_at, lane.get());
  if (out_at != 0) {
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(lane->device(), lane->host(),
                                            out_at, cudaMemcpyHostToDevice,
                                            lane->stream()));
  }
  PoolRowsBatch batch;
  batch.rows = pieces_->view();
  batch.defaults = defaults_.as<float>();
  batch.names = reinterpret_cast<const RowHandle*>(lane->device() + names_at);
  batch.inverse = reinterpret_cast<const int32_t*>(lane->device() + inverse_at);
  batch.offsets = reinterpret_cast<const int32_t*>(lane->device() + offsets_at);
  batch.num_samples = samples;
  batch.dim = dim_;
  batch.combiner = pooling.combiner;
  if (stays) {
    EV_RETURN_IF_ERROR(lane->Follow(*pooling.stream));
    EV_RETURN_IF_ERROR(LaunchPoolRows(batch, out, lane->stream()));
    work->reset(new LaneWork(device_, std::move(lane)));
    return Status::OK();
  }
  EV_RETURN_IF_ERROR(
      LaunchPoolRows(batch, reinterpret_cast<float*>(lane->device() + out_at),
                     lane->stream()));
  char* const to =
      direct ? reinterpret_cast<char*>(out) : lane->host() + out_at;
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(to, lane->device() + out_at,
                                          out_bytes, cudaMemcpyDeviceToHost,
                                          lane->stream()));
  std::unique_ptr<LaneWork> made(new LaneWork(device_, std::move(lane)));
  if (!direct) made->CopyAtEnd(to, out_bytes, out);
  *work = std::move(made);
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// GpuRows::StartGather: where tables and rows are goes up, a kernel copies.
// Nothing waits but Wait.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/work_lane.h"
#include "kernels/engine/embedding/gpu/gather_rows.h"
#include "kernels/engine/embedding/gpu/gpu_rows.h"
#include "kernels/engine/embedding/gpu/lane_work.h"
#include "kernels/engine/embedding/gpu/pinned_memory.h"

namespace ev {
namespace gpu {
namespace {

// Whether all names are one array in pinned memory.
bool AreTogether(Span<const DeviceGather> parts) {
  for (size_t p = 1; p < parts.size(); ++p) {
    if (parts[p].rows.data() != parts[p - 1].rows.end()) return false;
  }
  return IsPinned(parts[0].rows.data());
}

}  // namespace

Status GpuRows::StartGather(Span<const DeviceGather> parts,
                            const DeviceStream& stream,
                            std::unique_ptr<DeviceWork>* work) {
  int64_t num_names = 0, most_floats = 0;
  for (const DeviceGather& part : parts) {
    GpuRows* const table = static_cast<GpuRows*>(part.table);
    EV_RETURN_IF_ERROR(table->broken_);
    EV_RETURN_IF_ERROR(table->Flush());
    const int64_t n = part.rows.size();
    num_names += n;
    most_floats = std::max(most_floats, n * table->dim_);
    if (n > 0) EV_RETURN_IF_ERROR(CheckIsOn(device_, part.out, "the output"));
  }
  if (num_names == 0) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const size_t name_bytes = num_names * sizeof(RowHandle);
  const bool direct = AreTogether(parts);
  Parts there;
  const size_t parts_at = there.AddBytes(parts.size() * sizeof(GatherPart));
  const size_t names_at = there.AddBytes(name_bytes);
  std::unique_ptr<WorkLane> lane;
  EV_RETURN_IF_ERROR(WorkLane::Acquire(direct ? names_at : there.bytes(),
                                       there.bytes(), &lane));
  char* const device = lane->device();
  GatherPart* const put =
      reinterpret_cast<GatherPart*>(lane->host() + parts_at);
  size_t at = names_at;
  for (size_t p = 0; p < parts.size(); ++p) {
    const GpuRows& table = *static_cast<GpuRows*>(parts[p].table);
    GatherPart part;
    part.rows = table.pieces_->view();
    part.defaults = table.defaults_.as<float>();
    part.names = reinterpret_cast<const RowHandle*>(device + at);
    part.out = parts[p].out;
    part.num_rows = parts[p].rows.size();
    part.dim = table.dim_;
    put[p] = part;
    if (!direct) Put(parts[p].rows, at, lane.get());
    at += parts[p].rows.size() * sizeof(RowHandle);
  }
  if (direct) {
    EV_CUDA_RETURN_IF_ERROR(
        cudaMemcpyAsync(device + names_at, parts[0].rows.data(), name_bytes,
                        cudaMemcpyHostToDevice, lane->stream()));
  }
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(device, lane->host(), direct ? names_at : there.bytes(),
                      cudaMemcpyHostToDevice, lane->stream()));
  EV_RETURN_IF_ERROR(lane->Follow(stream));
  EV_RETURN_IF_ERROR(
      LaunchGatherRows(reinterpret_cast<const GatherPart*>(device + parts_at),
                       parts.size(), most_floats, lane->stream()));
  work->reset(new LaneWork(device_, std::move(lane)));
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

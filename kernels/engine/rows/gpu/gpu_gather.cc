// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// GpuRows::StartGather: where tables and rows are goes up, a kernel copies. Of
// keys that were deduplicated on the device it knows the rows already. Nothing
// waits but Wait.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/pinned_memory.h"
#include "kernels/engine/base/gpu/work_lane.h"
#include "kernels/engine/rows/gpu/gather_rows.h"
#include "kernels/engine/rows/gpu/gpu_distinct.h"
#include "kernels/engine/rows/gpu/gpu_rows.h"
#include "kernels/engine/rows/gpu/lane_work.h"

namespace ev {
namespace gpu {
namespace {

// The array that all names are together, if they are one in pinned memory.
Span<const RowHandle> NamesTogether(Span<const DeviceGather> parts) {
  const RowHandle* begin = nullptr;
  const RowHandle* end = nullptr;
  for (const DeviceGather& part : parts) {
    if (part.rows.empty()) continue;
    if (begin == nullptr) {
      begin = part.rows.begin();
    } else if (part.rows.begin() != end) {
      return Span<const RowHandle>();
    }
    end = part.rows.end();
  }
  if (begin == nullptr || !IsPinned(begin)) return Span<const RowHandle>();
  return Span<const RowHandle>(begin, end - begin);
}

}  // namespace

Status GpuRows::StartGather(Span<const DeviceGather> parts,
                            const DeviceStream& stream,
                            std::unique_ptr<DeviceWork>* work) {
  int64_t num_rows = 0, num_names = 0, most_floats = 0;
  for (const DeviceGather& part : parts) {
    GpuRows* const table = static_cast<GpuRows*>(part.table);
    EV_RETURN_IF_ERROR(table->broken_);
    EV_RETURN_IF_ERROR(table->Flush());
    const int64_t n = part.num_rows();
    num_rows += n;
    num_names += part.rows.size();
    most_floats = std::max(most_floats, n * table->dim_);
    if (n > 0) EV_RETURN_IF_ERROR(CheckIsOn(device_, part.out, "the output"));
  }
  if (num_rows == 0) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const size_t name_bytes = num_names * sizeof(RowHandle);
  const Span<const RowHandle> together = NamesTogether(parts);
  const bool direct = num_names == 0 || !together.empty();
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
    part.num_rows = parts[p].num_rows();
    part.dim = table.dim_;
    if (parts[p].distinct != nullptr) {
      const auto& distinct =
          static_cast<const GpuDistinct&>(*parts[p].distinct);
      part.names = distinct.device_names();
      part.inverse = distinct.batch().inverse + parts[p].first_id;
      EV_RETURN_IF_ERROR(distinct.Follow(lane.get()));
    }
    put[p] = part;
    if (!direct) Put(parts[p].rows, at, lane.get());
    at += parts[p].rows.size() * sizeof(RowHandle);
  }
  if (!together.empty()) {
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(device + names_at, together.data(),
                                            name_bytes, cudaMemcpyHostToDevice,
                                            lane->stream()));
  }
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(device, lane->host(), direct ? names_at : there.bytes(),
                      cudaMemcpyHostToDevice, lane->stream()));
  EV_RETURN_IF_ERROR(lane->Follow(stream));
  for (const DeviceGather& part : parts) {
    EV_RETURN_IF_ERROR(
        static_cast<GpuRows*>(part.table)->Follow(lane->stream()));
  }
  EV_RETURN_IF_ERROR(
      LaunchGatherRows(reinterpret_cast<const GatherPart*>(device + parts_at),
                       parts.size(), most_floats, lane->stream()));
  work->reset(new LaneWork(device_, std::move(lane)));
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepCall: overwrites the handles of ids before an update, because keys have
// got rows, or rows other places, since the lookup.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/rows/gpu_step/step_call.h"

namespace ev {
namespace gpu {

Status StepCall::SetHandles(const std::vector<NewHandles>& all,
                            StreamView stream) {
  int64_t num_ids = 0;
  for (const NewHandles& one : all) num_ids += one.table->unknown.size();
  if (num_ids == 0) return Status::OK();
  Parts both;
  const size_t ids_at = both.AddBytes(num_ids * sizeof(uint32_t));
  const size_t given_at = both.AddBytes(num_ids * sizeof(RowHandle));
  std::unique_ptr<WorkContext> context;
  EV_RETURN_IF_ERROR(
      WorkContext::Acquire(both.bytes(), both.bytes(), &context));
  char* const on_host = context->host();
  char* const on_device = context->device();
  contexts_.push_back(std::move(context));
  uint32_t* const ids = reinterpret_cast<uint32_t*>(on_host + ids_at);
  RowHandle* const given = reinterpret_cast<RowHandle*>(on_host + given_at);
  int64_t id = 0;
  for (const NewHandles& one : all) {
    const Table& table = *one.table;
    for (size_t k = 0; k < table.unknown.size(); ++k, ++id) {
      ids[id] = table.unknown[k];
      given[id] = one.handles[table.key_of[k]];
    }
  }
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
      on_device, on_host, both.bytes(), cudaMemcpyHostToDevice, stream.get()));
  return LaunchSetHandles(
      reinterpret_cast<const uint32_t*>(on_device + ids_at),
      reinterpret_cast<const RowHandle*>(on_device + given_at), num_ids,
      OnDevice<RowHandle>(on_device_.handles), stream);
}

Status StepCall::SetGivenHandles(const std::vector<GpuStepUpdate>& updates,
                                 StreamView stream) {
  size_t bytes = 0;
  for (const GpuStepUpdate& update : updates) {
    bytes += update.handles.size() * sizeof(RowHandle);
  }
  if (bytes == 0) return Status::OK();
  std::unique_ptr<WorkContext> context;
  EV_RETURN_IF_ERROR(WorkContext::Acquire(bytes, 0, &context));
  char* on_host = context->host();
  contexts_.push_back(std::move(context));
  for (const GpuStepUpdate& update : updates) {
    const size_t size = update.handles.size() * sizeof(RowHandle);
    if (size == 0) continue;
    std::transform(update.handles.begin(), update.handles.end(),
                   reinterpret_cast<RowHandle*>(on_host), [](RowHandle handle) {
                     return handle < kFirstReservedHandle ? handle : ev::kNoRow;
                   });
    const int64_t at = tables_[update.number].id_begin;
    EV_CUDA_RETURN_IF_ERROR(
        cudaMemcpyAsync(OnDevice<RowHandle>(on_device_.handles) + at, on_host,
                        size, cudaMemcpyHostToDevice, stream.get()));
    on_host += size;
  }
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepCall: ids on their way to the GPU.
//
// Half of the bytes of most models' int64 ids say nothing, and the link is what
// a lookup of many ids waits for. They go up as int32, until the table meets an
// id that does not fit: then the ids of that table are sent once more as they
// are, and whole ever after.

#include <cuda_runtime_api.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/rows/gpu/step_call.h"

namespace ev {
namespace gpu {

Status StepCall::Put(int t, int64_t begin, Span<const int64_t> ids) {
  if (ids.empty()) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const Table& table = tables_[t];
  char* const here = lane_->host() + here_.ids;
  char* const there = lane_->device() + there_.ids;
  if (!table.narrows) {
    return upload_->Put(table.ids_at + begin * sizeof(int64_t), ids.data(),
                        ids.size() * sizeof(int64_t), put_bytes_, here, there,
                        lane_.get());
  }
  bool fit = false;
  EV_RETURN_IF_ERROR(upload_->PutNarrowed(
      table.ids_at + begin * sizeof(int32_t), ids.data(), ids.size(),
      put_bytes_, here, there, lane_.get(), &fit));
  // Start of this table comes after it.
  if (!fit) misfits_[t].store(true, std::memory_order_relaxed);
  return Status::OK();
}

Status StepCall::Put(int t, int64_t begin, Span<const int32_t> ids) {
  if (ids.empty()) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  return upload_->Put(tables_[t].ids_at + begin * sizeof(int32_t), ids.data(),
                      ids.size() * sizeof(int32_t), put_bytes_,
                      lane_->host() + here_.ids, lane_->device() + there_.ids,
                      lane_.get());
}

Status StepCall::PutWide(Table* table) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  table->rows->MeetWideIds();
  const int64_t* const ids = static_cast<const int64_t*>(table->given);
  std::unique_ptr<WideIds> wide(new WideIds);
  wide->here.assign(ids, ids + table->num_ids);
  const size_t bytes = table->num_ids * sizeof(int64_t);
  EV_RETURN_IF_ERROR(wide->there.Allocate(bytes, "ids of 64 bits"));
  // 'wide' lives as long as the step.
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(wide->there.data(), wide->here.data(),
                                          bytes, cudaMemcpyHostToDevice,
                                          lane_->stream()));
  table->wide = std::move(wide);
  table->is_narrow = table->narrows = false;
  return Status::OK();
}

const char* StepCall::HostIds(const Table& table) const {
  return table.wide != nullptr
             ? reinterpret_cast<const char*>(table.wide->here.data())
             : lane_->host() + here_.ids + table.ids_at;
}

char* StepCall::DeviceIds(const Table& table) const {
  return table.wide != nullptr ? table.wide->there.as<char>()
                               : lane_->device() + there_.ids + table.ids_at;
}

// Before anything else: the link is what a lookup of many ids waits for.
Status StepCall::SendPinned() {
  for (const Table& table : tables_) {
    if (table.where != IdsAre::kPinned) continue;
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        lane_->device() + there_.ids + table.ids_at, table.given,
        table.id_bytes(), cudaMemcpyHostToDevice, lane_->stream()));
  }
  return Status::OK();
}

Status StepCall::Ids(int t, std::vector<char>* ids) const {
  const Table& table = tables_[t];
  ids->resize(table.id_bytes());
  if (table.where != IdsAre::kHere) {
    return lane_->BringDown(there_.ids + table.ids_at, ids->size(),
                            ids->data());
  }
  std::memcpy(ids->data(), HostIds(table), ids->size());
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

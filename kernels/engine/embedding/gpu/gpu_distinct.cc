// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/gpu/gpu_distinct.h"

#include <cuda_runtime_api.h>

#include <cstring>
#include <string>
#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/embedding/gpu/distinct.h"
#include "kernels/engine/embedding/gpu/lane_work.h"

namespace ev {
namespace gpu {

GpuDistinct::GpuDistinct(int device, int64_t num_ids, int64_t num_samples)
    : device_(device), num_ids_(num_ids), num_samples_(num_samples) {
  const size_t n = num_ids;
  Parts here, there;
  here_ = there_ = Layout();
  // Keys come down where the ids were, which have gone up by then.
  here_.ids = here_.keys = here.AddBytes(n * sizeof(int64_t));
  here_.counts = here.AddBytes(n * sizeof(int32_t));
  here_.offsets = here.AddBytes((num_samples + 1) * sizeof(int32_t));
  here_.num_unique = here.AddBytes(sizeof(uint32_t));
  here_.bytes = here.bytes();
  there_.ids = there.AddBytes(n * sizeof(int64_t));
  there_.entries =
      there.AddBytes(NumDistinctEntries(num_ids) * sizeof(unsigned long long));
  there_.heads = there.AddBytes(n * sizeof(uint32_t));
  there_.tiles = there.AddBytes(NumDistinctTiles(num_ids) * sizeof(uint32_t));
  there_.inverse = there.AddBytes(n * sizeof(int32_t));
  there_.keys = there.AddBytes(n * sizeof(int64_t));
  there_.counts = there.AddBytes(n * sizeof(int32_t));
  there_.offsets = there.AddBytes((num_samples + 1) * sizeof(int32_t));
  there_.num_unique = there.AddBytes(sizeof(uint32_t));
  there_.bytes = there.bytes();
}

Status GpuDistinct::Make(int device, int64_t num_ids, int64_t num_samples,
                         std::unique_ptr<DeviceDistinct>* distinct) {
  std::unique_ptr<GpuDistinct> made(
      new GpuDistinct(device, num_ids, num_samples));
  EV_RETURN_IF_ERROR(
      WorkLane::Acquire(made->here_.bytes, made->there_.bytes, &made->lane_));
  *distinct = std::move(made);
  return Status::OK();
}

GpuDistinct::~GpuDistinct() {
  if (lane_ == nullptr) return;
  if (is_idle_) {
    WorkLane::Release(std::move(lane_));
    return;
  }
  // The lane waits when it is destroyed, below.
  EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
}

Status GpuDistinct::PutBytes(int64_t begin, const void* ids, size_t count,
                             size_t width) {
  if (count == 0) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  char* const host = lane_->host() + here_.ids + begin * width;
  std::memcpy(host, ids, count * width);
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(lane_->device() + there_.ids + begin * width, host,
                      count * width, cudaMemcpyHostToDevice, lane_->stream()));
  return Status::OK();
}

Status GpuDistinct::Put(int64_t begin, Span<const int64_t> ids) {
  return PutBytes(begin, ids.data(), ids.size(), sizeof(int64_t));
}

Status GpuDistinct::Put(int64_t begin, Span<const int32_t> ids) {
  is_narrow_.store(true, std::memory_order_relaxed);
  return PutBytes(begin, ids.data(), ids.size(), sizeof(int32_t));
}

Status GpuDistinct::Start(Span<const int32_t> offsets) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const size_t offset_bytes = offsets.size() * sizeof(int32_t);
  std::memcpy(lane_->host() + here_.offsets, offsets.data(), offset_bytes);
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
      lane_->device() + there_.offsets, lane_->host() + here_.offsets,
      offset_bytes, cudaMemcpyHostToDevice, lane_->stream()));
  DistinctBatch batch;
  batch.ids = lane_->device() + there_.ids;
  batch.is_narrow = is_narrow_.load(std::memory_order_relaxed);
  batch.num_ids = num_ids_;
  batch.entries = OnDevice<unsigned long long>(there_.entries);
  batch.heads = OnDevice<uint32_t>(there_.heads);
  batch.tiles = OnDevice<uint32_t>(there_.tiles);
  batch.inverse = OnDevice<int32_t>(there_.inverse);
  batch.keys = OnDevice<int64_t>(there_.keys);
  batch.counts = OnDevice<int32_t>(there_.counts);
  batch.num_unique = OnDevice<uint32_t>(there_.num_unique);
  batch.sent.keys = OnHost<int64_t>(here_.keys);
  batch.sent.counts = OnHost<int32_t>(here_.counts);
  batch.sent.num_unique = OnHost<uint32_t>(here_.num_unique);
  return LaunchDistinct(batch, lane_->stream());
}

Status GpuDistinct::Wait() {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  EV_RETURN_IF_ERROR(lane_->Wait());
  num_unique_ = *OnHost<uint32_t>(here_.num_unique);
  if (num_unique_ < 1 || num_unique_ > num_ids_) {
    return Internal("the GPU found " + std::to_string(num_unique_) +
                    " distinct keys among " + std::to_string(num_ids_) +
                    " ids");
  }
  is_idle_ = true;
  return Status::OK();
}

int64_t* GpuDistinct::keys() const { return OnHost<int64_t>(here_.keys); }
int32_t* GpuDistinct::counts() const { return OnHost<int32_t>(here_.counts); }

GroupedBatch GpuDistinct::batch() const {
  GroupedBatch batch;
  batch.inverse = OnDevice<int32_t>(there_.inverse);
  batch.counts = OnDevice<int32_t>(there_.counts);
  batch.offsets = OnDevice<int32_t>(there_.offsets);
  batch.num_ids = num_ids_;
  batch.num_unique = num_unique_;
  batch.num_samples = num_samples_;
  return batch;
}

Status GpuDistinct::Occurrences(int32_t* samples) const {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const GroupedBatch grouped = batch();
  size_t scratch_bytes = 0;
  EV_RETURN_IF_ERROR(GroupScratchBytes(grouped, &scratch_bytes));
  const size_t sample_bytes = num_ids_ * sizeof(int32_t);
  Parts there;
  const size_t samples_at = there.AddBytes(sample_bytes);
  const size_t scratch_at = there.AddBytes(scratch_bytes);
  std::unique_ptr<WorkLane> lane;
  EV_RETURN_IF_ERROR(WorkLane::Acquire(sample_bytes, there.bytes(), &lane));
  int32_t* const made = reinterpret_cast<int32_t*>(lane->device() + samples_at);
  EV_RETURN_IF_ERROR(LaunchGroup(grouped, lane->device() + scratch_at,
                                 scratch_bytes, /*ends=*/nullptr, made,
                                 lane->stream()));
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(lane->host(), made, sample_bytes,
                                          cudaMemcpyDeviceToHost,
                                          lane->stream()));
  EV_RETURN_IF_ERROR(lane->Wait());
  std::memcpy(samples, lane->host(), sample_bytes);
  WorkLane::Release(std::move(lane));
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

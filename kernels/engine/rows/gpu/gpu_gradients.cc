// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu/gpu_gradients.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/pinned_memory.h"

namespace ev {
namespace gpu {

GpuGradients::GpuGradients(int device, int64_t dim, int64_t num_samples,
                           bool is_pinned, std::unique_ptr<WorkLane> lane)
    : device_(device),
      row_bytes_(dim * sizeof(float)),
      bytes_(num_samples * row_bytes_),
      is_pinned_(is_pinned),
      lane_(std::move(lane)),
      upload_(is_pinned ? 0 : bytes_) {}

Status GpuGradients::Make(int device, int64_t dim, const float* grads,
                          int64_t num_samples,
                          std::unique_ptr<DeviceGradients>* gradients) {
  const size_t bytes = num_samples * dim * sizeof(float);
  const bool is_pinned = bytes == 0 || IsPinned(grads);
  std::unique_ptr<WorkLane> lane;
  EV_RETURN_IF_ERROR(WorkLane::Acquire(is_pinned ? 0 : bytes, bytes, &lane));
  std::unique_ptr<GpuGradients> made(
      new GpuGradients(device, dim, num_samples, is_pinned, std::move(lane)));
  if (is_pinned && bytes != 0) {
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(made->lane_->device(), grads, bytes,
                                            cudaMemcpyHostToDevice,
                                            made->lane_->stream()));
    EV_RETURN_IF_ERROR(
        DeviceEvent::Record(made->lane_->stream(), &made->copied_));
  }
  *gradients = std::move(made);
  return Status::OK();
}

GpuGradients::~GpuGradients() {
  EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
  // A lane whose copy failed is not reused; its destructor waits for the copy.
  if (copied_ == nullptr || copied_->Wait().ok()) {
    WorkLane::ReleaseBusy(std::move(lane_));
  }
}

Status GpuGradients::Put(int64_t begin, Span<const float> grads) {
  if (grads.empty()) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  return upload_.Put(begin * row_bytes_, grads.data(),
                     grads.size() * sizeof(float), bytes_, lane_->host(),
                     lane_->device(), lane_->stream());
}

Status GpuGradients::Before(StreamView stream) {
  std::shared_ptr<DeviceEvent> copied;
  EV_RETURN_IF_ERROR(DeviceEvent::Record(lane_->stream(), &copied));
  return copied->Before(stream);
}

}  // namespace gpu
}  // namespace ev

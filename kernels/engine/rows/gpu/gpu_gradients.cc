// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu/gpu_gradients.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/pinned_memory.h"

namespace ev {
namespace gpu {

GpuGradients::GpuGradients(int device, FloatType type, int64_t dim,
                           int64_t num_samples, bool is_pinned,
                           std::unique_ptr<WorkContext> context)
    : device_(device),
      type_(type),
      row_bytes_(dim * FloatBytes(type)),
      bytes_(num_samples * row_bytes_),
      is_pinned_(is_pinned),
      context_(std::move(context)),
      upload_(is_pinned ? 0 : bytes_) {}

Status GpuGradients::Make(int device, int64_t dim, ConstFloats grads,
                          int64_t num_samples,
                          std::unique_ptr<DeviceGradients>* gradients) {
  const size_t bytes = num_samples * dim * FloatBytes(grads.type());
  const bool is_pinned = bytes == 0 || IsPinned(grads.data());
  std::unique_ptr<WorkContext> context;
  EV_RETURN_IF_ERROR(
      WorkContext::Acquire(is_pinned ? 0 : bytes, bytes, &context));
  std::unique_ptr<GpuGradients> made(new GpuGradients(
      device, grads.type(), dim, num_samples, is_pinned, std::move(context)));
  if (is_pinned && bytes != 0) {
    EV_CUDA_RETURN_IF_ERROR(
        cudaMemcpyAsync(made->context_->device(), grads.data(), bytes,
                        cudaMemcpyHostToDevice, made->context_->stream()));
    EV_RETURN_IF_ERROR(
        DeviceEvent::Record(made->context_->stream(), &made->copied_));
  }
  *gradients = std::move(made);
  return Status::OK();
}

GpuGradients::~GpuGradients() {
  EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
  // A context whose copy failed is not reused; its destructor waits for the
  // copy.
  if (copied_ == nullptr || copied_->Wait().ok()) {
    WorkContext::ReleaseBusy(std::move(context_));
  }
}

Status GpuGradients::Put(int64_t begin, int64_t end, ConstFloats grads) {
  if (begin == end) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  return upload_.Put(begin * row_bytes_, grads.data(),
                     (end - begin) * row_bytes_, bytes_, context_->host(),
                     context_->device(), context_->stream());
}

Status GpuGradients::Before(StreamView stream) {
  std::shared_ptr<DeviceEvent> copied;
  EV_RETURN_IF_ERROR(DeviceEvent::Record(context_->stream(), &copied));
  return copied->Before(stream);
}

}  // namespace gpu
}  // namespace ev

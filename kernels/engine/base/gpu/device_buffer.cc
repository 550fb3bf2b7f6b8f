// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu/device_buffer.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"

namespace ev {
namespace gpu {
namespace {

std::atomic<bool (*)(size_t)>& Hook() {
  static std::atomic<bool (*)(size_t)> hook{nullptr};
  return hook;
}

bool IsRefused(size_t size_bytes) {
  bool (*const allow)(size_t) = Hook().load();
  return allow != nullptr && !allow(size_bytes);
}

}  // namespace

void SetDeviceAllocationHookForTesting(bool (*allow)(size_t bytes)) {
  Hook().store(allow);
}

DeviceBuffer::~DeviceBuffer() { Free(); }

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) : DeviceBuffer() {
  *this = std::move(other);
}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(is_on_host_, other.is_on_host_);
  return *this;
}

void DeviceBuffer::Free() {
  if (data_ != nullptr && is_on_host_) {
    EV_CUDA_LOG_IF_ERROR(cudaFreeHost(data_));
  } else if (data_ != nullptr) {
    EV_CUDA_LOG_IF_ERROR(cudaFree(data_));
  }
  data_ = nullptr;
  size_bytes_ = 0;
  is_on_host_ = false;
}

Status DeviceBuffer::Allocate(size_t size_bytes, const std::string& what) {
  Free();
  if (size_bytes == 0) return Status::OK();
  void* data = nullptr;
  const cudaError_t error = IsRefused(size_bytes)
                                ? cudaErrorMemoryAllocation
                                : cudaMalloc(&data, size_bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears it, or the next launch would report it
    size_t free_bytes = 0, total_bytes = 0;
    EV_CUDA_RETURN_IF_ERROR(cudaMemGetInfo(&free_bytes, &total_bytes));
    return ResourceExhausted(what + " needs " + std::to_string(size_bytes) +
                             " bytes of device memory, " +
                             std::to_string(free_bytes) + " of " +
                             std::to_string(total_bytes) + " are free");
  }
  EV_CUDA_RETURN_IF_ERROR(error);
  data_ = data;
  size_bytes_ = size_bytes;
  return Status::OK();
}

Status DeviceBuffer::AllocateOnHost(size_t size_bytes,
                                    const std::string& what) {
  Free();
  if (size_bytes == 0) return Status::OK();
  void* data = nullptr;
  const cudaError_t error =
      IsRefused(size_bytes)
          ? cudaErrorMemoryAllocation
          : cudaHostAlloc(&data, size_bytes,
                          cudaHostAllocPortable | cudaHostAllocMapped);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears it, or the next launch would report it
    return ResourceExhausted(what + " needs " + std::to_string(size_bytes) +
                             " bytes of pinned host memory, which the system "
                             "or the driver refuses");
  }
  EV_CUDA_RETURN_IF_ERROR(error);
  data_ = data;
  size_bytes_ = size_bytes;
  is_on_host_ = true;
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

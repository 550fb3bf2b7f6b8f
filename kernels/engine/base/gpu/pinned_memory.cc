// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu/pinned_memory.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <string>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/transfer_memory.h"

namespace ev {
namespace gpu {
namespace {

std::atomic<int> pinning_device{0};

void* Take(size_t bytes) {
  void* block = nullptr;
  if (cudaSetDevice(pinning_device) != cudaSuccess ||
      cudaHostAlloc(&block, bytes, cudaHostAllocPortable) != cudaSuccess) {
    cudaGetLastError();  // The caller uses ordinary memory instead.
    return nullptr;
  }
  return block;
}

void GiveBack(void* block) { EV_CUDA_LOG_IF_ERROR(cudaFreeHost(block)); }

}  // namespace

bool IsPinned(const void* memory) {
  cudaPointerAttributes attributes;
  if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return attributes.type == cudaMemoryTypeHost;
}

Status CheckIsOn(int device, const void* memory, const char* what) {
  cudaPointerAttributes attributes;
  EV_CUDA_RETURN_IF_ERROR(cudaPointerGetAttributes(&attributes, memory));
  if (attributes.type == cudaMemoryTypeDevice && attributes.device == device) {
    return Status::OK();
  }
  return InvalidArgument(
      std::string(what) + " is " +
      (attributes.type == cudaMemoryTypeDevice
           ? "in the memory of GPU " + std::to_string(attributes.device)
           : std::string("not in GPU memory")) +
      ", the rows are in that of GPU " + std::to_string(device) +
      ", the GPU of this process; give each process one GPU by "
      "CUDA_VISIBLE_DEVICES");
}

void OfferPinnedMemory(int device) {
  pinning_device = device;
  TransferMemorySource source;
  source.allocate = &Take;
  source.free = &GiveBack;
  RegisterTransferMemory(source);
}

}  // namespace gpu
}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/gpu/pinned_memory.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>

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
    cudaGetLastError();  // ordinary memory does as well
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

void OfferPinnedMemory(int device) {
  pinning_device = device;
  TransferMemorySource source;
  source.allocate = &Take;
  source.free = &GiveBack;
  RegisterTransferMemory(source);
}

}  // namespace gpu
}  // namespace ev

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The exported function of libhierarchical_parameter_server_cuda.so. The cache
// registers itself in the library's own copy of the engine when it is loaded.

#include "addons/hierarchical_parameter_server/cuda/cuda_library.h"

#include "addons/hierarchical_parameter_server/cuda/build_id.h"

namespace hps {
namespace {

DeviceCacheFactory Open(ev::TransferMemoryPool* transfer_memory) {
  ev::UseTransferMemoryPool(transfer_memory);
  return RegisteredDeviceCache();
}

}  // namespace
}  // namespace hps

extern "C" __attribute__((visibility("default"))) const ev::GpuLibrary*
ev_cuda_library() {
  static const hps::CudaLibrary library = {{EV_BUILD_ID}, &hps::Open};
  return &library;
}

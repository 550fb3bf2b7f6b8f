// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The function of libembedding_variable_cuda.so. The library's parts register
// themselves in its own copy of the engine while it is loaded; open returns
// them to the op library, which registers them in its copy.

#include "addons/sparse_operation_kit/cuda/cuda_library.h"

#include "addons/sparse_operation_kit/cuda/build_id.h"

namespace sok {
namespace {

CudaParts Open(const ProcessState& state) {
  ev::UseTransferMemoryPool(state.transfer_memory);
  ev::KeyedHash::SetOfProcess(state.hash);
  RegisterCarrier("memory", state.memory_carrier);
  CudaParts parts;
  parts.row_home = ev::RegisteredGpuRowHome();
  parts.interaction = ev::RegisteredInteractionDevice();
  parts.exchange_device = RegisteredExchangeDevice();
  RegisteredCarrier("nccl", &parts.nccl_carrier);
  return parts;
}

}  // namespace
}  // namespace sok

extern "C" __attribute__((visibility("default"))) const ev::GpuLibrary*
ev_cuda_library() {
  static const sok::CudaLibrary library = {{EV_BUILD_ID}, &sok::Open};
  return &library;
}

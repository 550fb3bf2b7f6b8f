// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Makes an op library that links this file load libembedding_variable_cuda.so
// when a GPU is first used.

#include <string>

#include "addons/sparse_operation_kit/cuda/build_id.h"
#include "addons/sparse_operation_kit/cuda/cuda_library.h"

namespace sok {
namespace {

ev::Status Load();

// A path that TensorFlow was given may be relative, and the folder may change.
const std::string& OpLibrary() {
  static const std::string* const path =
      new std::string(ev::FileOf(reinterpret_cast<const void*>(&Load)));
  return *path;
}

ev::Status Load() {
  const ev::GpuLibrary* library = nullptr;
  EV_RETURN_IF_ERROR(ev::OpenGpuLibrary(
      OpLibrary(), "libembedding_variable_cuda.so", EV_BUILD_ID, &library));
  ProcessState state;
  state.transfer_memory = ev::GetTransferMemoryPool();
  state.hash = ev::KeyedHash::OfProcess();
  RegisteredCarrier("memory", &state.memory_carrier);
  const CudaParts parts = static_cast<const CudaLibrary*>(library)->open(state);
  ev::RegisterGpuRowHome(parts.row_home);
  ev::RegisterInteractionDevice(parts.interaction);
  RegisterExchangeDevice(parts.exchange_device);
  RegisterCarrier("nccl", parts.nccl_carrier);
  return ev::Status::OK();
}

const bool kRegistered = !OpLibrary().empty() && ev::RegisterGpuLibrary(&Load);

}  // namespace
}  // namespace sok

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Makes an op library that links this file load its CUDA library when a cache
// in GPU memory is first needed.

#include <string>

#include "addons/hierarchical_parameter_server/cuda/build_id.h"
#include "addons/hierarchical_parameter_server/cuda/cuda_library.h"

namespace hps {
namespace {

ev::Status Load();

// Stored at load time: TensorFlow's path to the library may be relative, and
// the working folder may change.
const std::string& OpLibrary() {
  static const std::string* const path =
      new std::string(ev::FileOf(reinterpret_cast<const void*>(&Load)));
  return *path;
}

ev::Status Load() {
  const ev::GpuLibrary* library = nullptr;
  EV_RETURN_IF_ERROR(ev::OpenGpuLibrary(
      OpLibrary(), "libhierarchical_parameter_server_cuda.so", EV_BUILD_ID,
      &library));
  RegisterDeviceCache(static_cast<const CudaLibrary*>(library)->open(
      ev::GetTransferMemoryPool()));
  return ev::Status::OK();
}

const bool registered = !OpLibrary().empty() && ev::RegisterGpuLibrary(&Load);

}  // namespace
}  // namespace hps

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Functions of the CUDA library that libhierarchical_parameter_server.so calls
// after opening it (kernels/engine/base/gpu_library.h).

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CUDA_CUDA_LIBRARY_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CUDA_CUDA_LIBRARY_H_

#include "addons/hierarchical_parameter_server/cache/make_device_cache.h"
#include "kernels/engine/base/gpu_library.h"
#include "kernels/engine/base/transfer_memory.h"

namespace hps {

// Returns the factory of caches in GPU memory. transfer_memory: the process's
// pool, to which the cache adds pinned memory.
struct CudaLibrary : ev::GpuLibrary {
  DeviceCacheFactory (*open)(ev::TransferMemoryPool* transfer_memory);
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CUDA_CUDA_LIBRARY_H_

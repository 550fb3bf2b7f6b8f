// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What libembedding_variable.so and libembedding_variable_cuda.so exchange when
// the first opens the second (kernels/engine/base/gpu_library.h).

#ifndef ADDONS_SPARSE_OPERATION_KIT_CUDA_CUDA_LIBRARY_H_
#define ADDONS_SPARSE_OPERATION_KIT_CUDA_CUDA_LIBRARY_H_

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"
#include "addons/sparse_operation_kit/exchange/exchange_device.h"
#include "kernels/engine/base/gpu_library.h"
#include "kernels/engine/base/keyed_hash.h"
#include "kernels/engine/base/transfer_memory.h"
#include "kernels/engine/interaction/interaction_device.h"
#include "kernels/engine/rows/gpu_row_home.h"

namespace sok {

// State that the process has once: the CUDA library's own copies stay unused.
// Its other static objects are its own without harm: registries, which open
// reads, and free lists of scratch memory (UniquePool of ids/unique_pool.h),
// which serve only calls of the same library.
struct ProcessState {
  // Pinned memory that the GPU code offers serves TensorFlow's tensors.
  ev::TransferMemoryPool* transfer_memory = nullptr;
  ev::KeyedHash hash;
  // Ranks of one host exchange small messages by it beside NCCL. It keeps
  // the file that this process made last.
  CarrierKind memory_carrier;
};

struct CudaParts {
  ev::GpuRowHomeFactory row_home = nullptr;
  ev::InteractionDevice* interaction = nullptr;
  ExchangeDeviceFactory exchange_device = nullptr;
  CarrierKind nccl_carrier;
};

struct CudaLibrary : ev::GpuLibrary {
  CudaParts (*open)(const ProcessState& state);
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_CUDA_CUDA_LIBRARY_H_

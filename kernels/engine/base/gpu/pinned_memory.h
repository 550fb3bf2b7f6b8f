// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_BASE_GPU_PINNED_MEMORY_H_
#define KERNELS_ENGINE_BASE_GPU_PINNED_MEMORY_H_

#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// Whether a device reads and writes this memory by itself.
bool IsPinned(const void* memory);

// InvalidArgument unless the memory is that device's. 'what': "the output".
Status CheckIsOn(int device, const void* memory, const char* what);

// Makes pinned memory the source of base/transfer_memory.h, with this
// device current when it is taken.
void OfferPinnedMemory(int device);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_PINNED_MEMORY_H_

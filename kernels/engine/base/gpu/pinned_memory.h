// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_BASE_GPU_PINNED_MEMORY_H_
#define KERNELS_ENGINE_BASE_GPU_PINNED_MEMORY_H_

#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// Returns whether the memory is pinned, so that a device accesses it directly.
bool IsPinned(const void* memory);

// Returns InvalidArgument unless the memory is on that device. 'what' starts
// the message: "the output".
Status CheckIsOn(int device, const void* memory, const char* what);

// Registers pinned memory as the source of base/transfer_memory.h. It is
// allocated with this device current.
void OfferPinnedMemory(int device);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_PINNED_MEMORY_H_

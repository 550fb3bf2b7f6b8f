// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Which GPU is this process's.

#ifndef KERNELS_ENGINE_BASE_GPU_PROCESS_DEVICE_H_
#define KERNELS_ENGINE_BASE_GPU_PROCESS_DEVICE_H_

#include <string>

#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// The only GPU that this process sees, else the one with the number of its
// local rank, as launchers tell it, modulo the number of GPUs.
// FailedPrecondition, in a sentence that begins with 'who_needs' ("rows in GPU
// memory need"), when there is no driver, an old one, or no GPU.
Status ProcessDevice(const std::string& who_needs, int* device);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_PROCESS_DEVICE_H_

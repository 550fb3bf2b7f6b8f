// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Chooses the GPU of this process.

#ifndef KERNELS_ENGINE_BASE_GPU_PROCESS_DEVICE_H_
#define KERNELS_ENGINE_BASE_GPU_PROCESS_DEVICE_H_

#include <string>

#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// Sets *device to the local rank, as the launcher's environment gives it,
// modulo the number of visible GPUs. FailedPrecondition if the driver is
// missing or too old or no GPU is visible; the message begins with 'who_needs'
// ("rows in GPU memory need").
Status ProcessDevice(const std::string& who_needs, int* device);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_PROCESS_DEVICE_H_

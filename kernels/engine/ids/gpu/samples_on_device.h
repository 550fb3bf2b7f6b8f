// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Result bits of the kernels that check samples in GPU memory
// (samples_on_device.cuh).

#ifndef KERNELS_ENGINE_IDS_GPU_SAMPLES_ON_DEVICE_H_
#define KERNELS_ENGINE_IDS_GPU_SAMPLES_ON_DEVICE_H_

#include <cstdint>

namespace ev {
namespace gpu {

enum SampleBits : uint32_t {
  kNotOneIdEach = 1,
  kNotInOrder = 2,  // not ascending, or out of range
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_GPU_SAMPLES_ON_DEVICE_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What a kernel says of samples that are in the GPU's memory
// (samples_there.cuh).

#ifndef KERNELS_ENGINE_ROWS_GPU_SAMPLES_THERE_H_
#define KERNELS_ENGINE_ROWS_GPU_SAMPLES_THERE_H_

#include <cstdint>

namespace ev {
namespace gpu {

enum SampleBits : uint32_t {
  kNotOneIdEach = 1,
  kNotInOrder = 2,  // a sample before its predecessor's, or out of range
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_SAMPLES_THERE_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Checks samples that are in GPU memory and computes their offsets, with one
// thread per row split or id. With indices, the thread of id i writes the
// offsets of all samples after its predecessor's, up to its own. A thread takes
// long if many samples in a row have no id.

#ifndef KERNELS_ENGINE_IDS_GPU_SAMPLES_ON_DEVICE_CUH_
#define KERNELS_ENGINE_IDS_GPU_SAMPLES_ON_DEVICE_CUH_

#include <cstdint>

#include "kernels/engine/ids/gpu/samples_on_device.h"

namespace ev {
namespace gpu {

// The work of thread i of max(N, B) + 1, for N ids of B samples; returns
// SampleBits. The samples are splits [B + 1] or, if that is null, indices [N,
// 2]. offsets [B + 1] are valid unless a thread returns kNotInOrder.
__device__ __forceinline__ uint32_t FindSample(const int64_t* splits,
                                               const int64_t* indices,
                                               int64_t N, int64_t B, int64_t i,
                                               int32_t* offsets) {
  uint32_t bits = N == B ? 0 : kNotOneIdEach;
  if (splits != nullptr) {
    if (i <= B) {
      const int64_t begin = splits[i];
      const bool wrong = (i == 0 && begin != 0) || (i == B && begin != N) ||
                         begin < 0 || begin > N ||
                         (i < B && splits[i + 1] < begin);
      bits |= (begin == i ? 0 : kNotOneIdEach) | (wrong ? kNotInOrder : 0);
      offsets[i] = wrong ? 0 : static_cast<int32_t>(begin);
    }
  } else if (i <= N) {
    const int64_t before = i == 0 ? -1 : indices[2 * (i - 1)];
    const int64_t sample = i == N ? B : indices[2 * i];
    const bool wrong = sample < before || before < (i == 0 ? -1 : 0) ||
                       sample < 0 || (i < N && sample >= B);
    bits |= (sample == i ? 0 : kNotOneIdEach) | (wrong ? kNotInOrder : 0);
    if (!wrong) {
      for (int64_t s = before + 1; s <= sample; ++s) {
        offsets[s] = static_cast<int32_t>(i);
      }
    }
  }
  return bits;
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_GPU_SAMPLES_ON_DEVICE_CUH_

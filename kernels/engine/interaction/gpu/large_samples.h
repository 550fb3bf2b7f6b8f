// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels for samples of any size: slower than those for small ones where the
// latter can be used.

#ifndef KERNELS_ENGINE_INTERACTION_GPU_LARGE_SAMPLES_H_
#define KERNELS_ENGINE_INTERACTION_GPU_LARGE_SAMPLES_H_

#include <cstdint>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/interaction/pair_dots.h"

namespace ev {
namespace gpu {

// Pointers, of the device's memory: they are too many for parameters.
inline int64_t LargeWorkspaceBytes(int64_t num_vectors) {
  return 2 * num_vectors * static_cast<int64_t>(sizeof(float*));
}

// PairDots and PairDotsGradient: a launch, and one for each 256 pointers before
// it. REQUIRES: at least a sample, dim >= 1.
Status LaunchLargeDots(const VectorBatch& batch, float* dots, void* workspace,
                       StreamView stream);
Status LaunchLargeGradient(const VectorBatch& batch, const float* slopes,
                           Span<float* const> grads, void* workspace,
                           StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_INTERACTION_GPU_LARGE_SAMPLES_H_

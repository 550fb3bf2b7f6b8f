// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels for samples of any size and type. Slower than those of
// small_samples.h and narrow_samples.h, which have a size limit.

#ifndef KERNELS_ENGINE_INTERACTION_GPU_LARGE_SAMPLES_H_
#define KERNELS_ENGINE_INTERACTION_GPU_LARGE_SAMPLES_H_

#include <cstdint>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/interaction/pair_dots.h"

namespace ev {
namespace gpu {

// Size of the pointer arrays in device memory: they are too many for kernel
// parameters.
inline int64_t LargeWorkspaceBytes(int64_t num_vectors) {
  return 2 * num_vectors * static_cast<int64_t>(sizeof(void*));
}

// PairDots and PairDotsGradient: one launch, preceded by one for each 256
// pointers. REQUIRES: at least one sample, dim >= 1.
Status LaunchLargeDots(const VectorBatch& batch, MutableFloats dots,
                       void* workspace, StreamView stream);
Status LaunchLargeGradient(const VectorBatch& batch, ConstFloats slopes,
                           Span<const MutableFloats> grads, void* workspace,
                           StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_INTERACTION_GPU_LARGE_SAMPLES_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels for up to kMostVectors vectors of float16 or bfloat16, on tensor
// cores.

#ifndef KERNELS_ENGINE_INTERACTION_GPU_NARROW_SAMPLES_H_
#define KERNELS_ENGINE_INTERACTION_GPU_NARROW_SAMPLES_H_

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/interaction/gpu/small_samples.h"
#include "kernels/engine/interaction/pair_dots.h"

namespace ev {
namespace gpu {

inline bool IsNarrow(const VectorBatch& batch) {
  return batch.type() != FloatType::kFloat32 &&
         batch.num_vectors() <= kMostVectors && batch.dim <= kMostSampleBytes;
}

// PairDots and PairDotsGradient, one launch each. REQUIRES: IsNarrow, at least
// one sample, dim >= 1.
Status LaunchNarrowDots(const VectorBatch& batch, MutableFloats dots,
                        StreamView stream);
Status LaunchNarrowGradient(const VectorBatch& batch, ConstFloats slopes,
                            Span<const MutableFloats> grads, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_INTERACTION_GPU_NARROW_SAMPLES_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels for samples of float32 that fit into a block's shared memory.

#ifndef KERNELS_ENGINE_INTERACTION_GPU_SMALL_SAMPLES_H_
#define KERNELS_ENGINE_INTERACTION_GPU_SMALL_SAMPLES_H_

#include <cstddef>
#include <cstdint>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/interaction/pair_dots.h"

namespace ev {
namespace gpu {

// Maximum number of vectors; their pointers are kernel parameters.
constexpr int kMostVectors = 128;
// Maximum shared memory of one sample, which every card since compute
// capability 8.0 has.
constexpr int64_t kMostSampleBytes = 96 * 1024;

inline int64_t UpToFour(int64_t n) { return (n + 3) / 4 * 4; }

// Returns the bytes of a sample's rows plus its matrix of slopes; its dots need
// less than the matrix.
inline int64_t SampleBytes(int64_t num_vectors, int64_t dim) {
  return num_vectors * (UpToFour(dim) + UpToFour(num_vectors)) *
         static_cast<int64_t>(sizeof(float));
}

inline bool IsSmall(const VectorBatch& batch) {
  return batch.type() == FloatType::kFloat32 &&
         batch.num_vectors() <= kMostVectors && batch.dim <= kMostSampleBytes &&
         SampleBytes(batch.num_vectors(), batch.dim) <= kMostSampleBytes;
}

// Distribution of a batch over a kernel's blocks.
struct BlocksOfSamples {
  int samples_of_block;
  unsigned num_blocks;
  size_t bytes;  // shared
};
BlocksOfSamples CutIntoBlocks(const VectorBatch& batch);

// PairDots and PairDotsGradient, one launch each. REQUIRES: IsSmall, at least
// one sample, dim >= 1.
Status LaunchSmallDots(const VectorBatch& batch, float* dots,
                       StreamView stream);
Status LaunchSmallGradient(const VectorBatch& batch, const float* slopes,
                           Span<const MutableFloats> grads, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_INTERACTION_GPU_SMALL_SAMPLES_H_

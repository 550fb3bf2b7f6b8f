// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Launch helpers of both kernels for small samples.

#ifndef KERNELS_ENGINE_INTERACTION_GPU_SAMPLE_LAUNCH_CUH_
#define KERNELS_ENGINE_INTERACTION_GPU_SAMPLE_LAUNCH_CUH_

#include <cstdint>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/interaction/gpu/sample_batch.cuh"

namespace ev {
namespace gpu {

// Shared memory that a block may have without a function attribute.
constexpr size_t kBytesWithoutAttribute = 48 * 1024;

inline bool IsAligned(const float* p) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0;
}

inline SampleBatch MakeSampleBatch(const VectorBatch& batch,
                                   const BlocksOfSamples& blocks) {
  SampleBatch in = {};
  in.num_samples = batch.num_samples;
  in.num_vectors = static_cast<int>(batch.num_vectors());
  in.dim = static_cast<int>(batch.dim);
  in.stride = static_cast<int>(UpToFour(batch.dim));
  in.samples_of_block = blocks.samples_of_block;
  in.by_fours = in.dim % 4 == 0;
  for (int v = 0; v < in.num_vectors; ++v) {
    in.vectors[v] = batch.vectors[v].floats();
    in.by_fours = in.by_fours && IsAligned(in.vectors[v]);
  }
  const int loads = in.by_fours ? in.dim / 4 : in.stride;
  while (in.log_lanes < 5 && (1 << in.log_lanes) < loads) ++in.log_lanes;
  return in;
}

// Allows a kernel that much shared memory on the current device.
template <typename Kernel>
Status AllowShared(Kernel* kernel, size_t bytes) {
  if (bytes <= kBytesWithoutAttribute) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(bytes)));
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_INTERACTION_GPU_SAMPLE_LAUNCH_CUH_

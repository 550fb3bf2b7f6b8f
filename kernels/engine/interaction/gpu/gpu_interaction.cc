// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The interaction on NVIDIA GPUs. All calls launch on the framework's stream
// and do not wait.

#include <cuda_runtime_api.h>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/interaction/gpu/large_samples.h"
#include "kernels/engine/interaction/gpu/narrow_samples.h"
#include "kernels/engine/interaction/gpu/small_samples.h"
#include "kernels/engine/interaction/interaction_device.h"

namespace ev {
namespace gpu {
namespace {

class GpuInteraction : public InteractionDevice {
 public:
  int64_t WorkspaceBytes(const VectorBatch& batch) const override {
    return IsSmall(batch) || IsNarrow(batch)
               ? 0
               : LargeWorkspaceBytes(batch.num_vectors());
  }

  Status StartDots(const VectorBatch& batch, MutableFloats dots,
                   void* workspace, const DeviceStream& stream) override {
    if (batch.num_samples == 0) return Status::OK();
    if (batch.dim == 0) {
      EV_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(
          dots.data(), 0,
          batch.num_samples * batch.num_pairs() * FloatBytes(dots.type()),
          static_cast<cudaStream_t>(stream.native)));
      return Status::OK();
    }
    const StreamView view(static_cast<cudaStream_t>(stream.native));
    if (IsNarrow(batch)) return LaunchNarrowDots(batch, dots, view);
    return IsSmall(batch) ? LaunchSmallDots(batch, dots.floats(), view)
                          : LaunchLargeDots(batch, dots, workspace, view);
  }

  Status StartGradient(const VectorBatch& batch, ConstFloats slopes,
                       Span<const MutableFloats> grads, void* workspace,
                       const DeviceStream& stream) override {
    if (batch.num_samples == 0 || batch.dim == 0) return Status::OK();
    const StreamView view(static_cast<cudaStream_t>(stream.native));
    if (IsNarrow(batch)) {
      return LaunchNarrowGradient(batch, slopes, grads, view);
    }
    return IsSmall(batch)
               ? LaunchSmallGradient(batch, slopes.floats(), grads, view)
               : LaunchLargeGradient(batch, slopes, grads, workspace, view);
  }
};

const bool kRegistered = RegisterInteractionDevice(new GpuInteraction);

}  // namespace
}  // namespace gpu
}  // namespace ev

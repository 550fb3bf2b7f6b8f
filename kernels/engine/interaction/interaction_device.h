// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// DLRM's interaction on a framework's device: pair_dots.h for vectors, slopes
// and results in device memory. A program has such a device if it links
// interaction/gpu:gpu_interaction or loads a CUDA library.

#ifndef KERNELS_ENGINE_INTERACTION_INTERACTION_DEVICE_H_
#define KERNELS_ENGINE_INTERACTION_INTERACTION_DEVICE_H_

#include <cstdint>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/interaction/pair_dots.h"

namespace ev {

// Thread-safe. Calls enqueue work on a stream and return. Results are valid,
// and the memory may be reused, after the stream's work so far. The device is
// the one that is current for the calling thread.
class InteractionDevice {
 public:
  virtual ~InteractionDevice() {}

  // Returns the device of this program. Loads the CUDA library if none is
  // registered. FailedPrecondition, with the reason, if there is no device;
  // Internal if the CUDA library cannot be loaded.
  static Status Get(InteractionDevice** device);

  // Returns the bytes of device memory, aligned to 8, that either call needs in
  // addition to its results; often 0. The same rules as for results apply.
  virtual int64_t WorkspaceBytes(const VectorBatch& batch) const = 0;

  // Like PairDots and PairDotsGradient. The sums may have another order, which
  // is always the same.
  virtual Status StartDots(const VectorBatch& batch, MutableFloats dots,
                           void* workspace, const DeviceStream& stream) = 0;
  virtual Status StartGradient(const VectorBatch& batch, ConstFloats slopes,
                               Span<const MutableFloats> grads, void* workspace,
                               const DeviceStream& stream) = 0;
};

// Called by the static initializer of the library with GPU code, or with the
// device of a loaded CUDA library. The device is never destroyed. Returns true.
bool RegisterInteractionDevice(InteractionDevice* device);
// Null: none is registered. Loads no CUDA library.
InteractionDevice* RegisteredInteractionDevice();

}  // namespace ev

#endif  // KERNELS_ENGINE_INTERACTION_INTERACTION_DEVICE_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The seam between DLRM's interaction and a framework's device: pair_dots.h
// where vectors, slopes and results are in the device's memory. A program has
// one if it links interaction/gpu:gpu_interaction or loads a CUDA library.

#ifndef KERNELS_ENGINE_INTERACTION_INTERACTION_DEVICE_H_
#define KERNELS_ENGINE_INTERACTION_INTERACTION_DEVICE_H_

#include <cstdint>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/interaction/pair_dots.h"

namespace ev {

// Thread-safe. Calls begin work on a stream and return: results are there when
// the device is through with what the stream has been given, and the memory
// must not be used for anything else before. The device is the one that is
// current for the calling thread.
class InteractionDevice {
 public:
  virtual ~InteractionDevice() {}

  // That of this program; loads the CUDA library if none is registered.
  // FailedPrecondition, with the reason, when there is none; Internal: the CUDA
  // library cannot be loaded.
  static Status Get(InteractionDevice** device);

  // Bytes of the device's memory, aligned to 8, that either call needs beside
  // its results; often 0. They are used as the results are.
  virtual int64_t WorkspaceBytes(const VectorBatch& batch) const = 0;

  // As PairDots and PairDotsGradient; the sums' order may be another, and is
  // always the same.
  virtual Status StartDots(const VectorBatch& batch, float* dots,
                           void* workspace, const DeviceStream& stream) = 0;
  virtual Status StartGradient(const VectorBatch& batch, const float* slopes,
                               Span<float* const> grads, void* workspace,
                               const DeviceStream& stream) = 0;
};

// Called by a static initializer of the GPU code that a program links, or with
// the device of a CUDA library that was loaded; the device is never destroyed.
// Returns true.
bool RegisterInteractionDevice(InteractionDevice* device);
// Null: none is registered. Loads no CUDA library.
InteractionDevice* RegisteredInteractionDevice();

}  // namespace ev

#endif  // KERNELS_ENGINE_INTERACTION_INTERACTION_DEVICE_H_

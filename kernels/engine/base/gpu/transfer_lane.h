// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A way between this process's memory and a device: a stream with two pinned
// buffers and their counterparts on the device, which take turns, so that the
// processor fills or empties one while the other is on the link.

#ifndef KERNELS_ENGINE_BASE_GPU_TRANSFER_LANE_H_
#define KERNELS_ENGINE_BASE_GPU_TRANSFER_LANE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// Used by one call at a time.
class TransferLane {
 public:
  // One turn's buffers.
  struct Turn {
    char* host = nullptr;  // pinned
    char* device = nullptr;
    size_t bytes = 0;  // of each
    cudaEvent_t done = nullptr;
  };

  TransferLane() {}
  ~TransferLane();
  TransferLane(const TransferLane&) = delete;
  TransferLane& operator=(const TransferLane&) = delete;

  // An idle lane of the current device, or a new one, with at least that many
  // bytes a turn.
  static Status Acquire(size_t bytes, std::unique_ptr<TransferLane>* lane);
  // Gives it back; REQUIRES that nothing is under way on it. A lane on which a
  // call failed is destroyed instead.
  static void Release(std::unique_ptr<TransferLane> lane);

  cudaStream_t stream() const { return stream_; }
  // The turn that was used longer ago, once the device is done with it.
  Status Next(Turn** turn);
  // Marks the end of a turn's work.
  Status End(Turn* turn);
  // Waits for all.
  Status Wait();

 private:
  Status Create(size_t bytes);

  int device_ = -1;
  cudaStream_t stream_ = nullptr;
  Turn turns_[2];
  DeviceBuffer memory_[2];
  int next_ = 0;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_TRANSFER_LANE_H_

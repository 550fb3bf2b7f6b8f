// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A double-buffered copy path between host memory and a device: a stream with
// two pairs of buffers, pinned and on the device. The CPU fills or empties one
// pair while the other is being transferred.

#ifndef KERNELS_ENGINE_BASE_GPU_WORK_TRANSFER_RING_H_
#define KERNELS_ENGINE_BASE_GPU_WORK_TRANSFER_RING_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// Used by one call at a time.
class TransferRing {
 public:
  // One pair of buffers.
  struct Turn {
    char* host = nullptr;  // pinned
    char* device = nullptr;
    size_t bytes = 0;  // of each
    cudaEvent_t done = nullptr;
  };

  TransferRing() {}
  ~TransferRing();  // waits for the ring's work
  TransferRing(const TransferRing&) = delete;
  TransferRing& operator=(const TransferRing&) = delete;

  // Returns an idle ring of the current device, or a new one, with at least
  // 'bytes' per buffer.
  static Status Acquire(size_t bytes, std::unique_ptr<TransferRing>* ring);
  // Returns the ring to the pool. REQUIRES: no work is in flight on it. Destroy
  // the ring instead if a call on it failed.
  static void Release(std::unique_ptr<TransferRing> ring);

  cudaStream_t stream() const { return stream_; }
  // Returns the buffers that were used longer ago, once the device is done with
  // them.
  Status Next(Turn** turn);
  // Marks the end of the work on these buffers.
  Status End(Turn* turn);
  // Waits for all work of the ring.
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

#endif  // KERNELS_ENGINE_BASE_GPU_WORK_TRANSFER_RING_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The resources of one call's work on a device: a stream, device memory and
// pinned host memory. Contexts are pooled, so that a step in its steady state
// allocates nothing.

#ifndef KERNELS_ENGINE_BASE_GPU_WORK_WORK_CONTEXT_H_
#define KERNELS_ENGINE_BASE_GPU_WORK_WORK_CONTEXT_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// Used by one call at a time.
class WorkContext {
 public:
  WorkContext() {}
  ~WorkContext();  // waits for the context's work
  WorkContext(const WorkContext&) = delete;
  WorkContext& operator=(const WorkContext&) = delete;

  static constexpr size_t kInFlightShare = 32;

  // Returns a context of the current device with at least that much memory,
  // aligned to 256 bytes. Takes the smallest idle context that fits, else grows
  // the largest idle one, else creates one.
  //
  // Limit: the contexts with work in flight, and this request, may use
  // 1/kInFlightShare of the device's memory. Beyond that, and if no idle
  // context fits, Acquire waits for the oldest context in flight that fits and
  // has at most twice device_bytes. If there is none, it does not wait.
  // ResourceExhausted: memory of the host or device cannot be allocated.
  static Status Acquire(size_t host_bytes, size_t device_bytes,
                        std::unique_ptr<WorkContext>* context);
  // Returns the context to the pool. REQUIRES: no work is in flight on it.
  // Destroy the context instead if a call on it failed.
  static void Release(std::unique_ptr<WorkContext> context);
  // Like Release, but work may be in flight on the context's stream; the
  // context is reused when that work is done.
  static void ReleaseBusy(std::unique_ptr<WorkContext> context);

  char* host() const { return host_; }
  char* device() const { return memory_.as<char>(); }

  // Copies [at, at + bytes) of the context's device memory to ordinary memory,
  // after all work enqueued on the context; waits. Makes the context's device
  // current. Several threads may call it at once.
  Status BringDown(size_t at, size_t bytes, void* to) const;

  cudaStream_t stream() const { return stream_; }
  // Makes later work on this context wait for all work enqueued on the other
  // stream. The host does not wait. REQUIRES: the context's device is current.
  Status Follow(const DeviceStream& other);
  // Waits for all work of the context.
  Status Wait();

 private:
  Status Create();
  // Growing loses the contents.
  Status Reserve(size_t host_bytes, size_t device_bytes);

  int device_number_ = -1;
  bool may_be_busy_ = false;
  cudaStream_t stream_ = nullptr;
  char* host_ = nullptr;  // pinned
  size_t host_bytes_ = 0;
  DeviceBuffer memory_;
  cudaEvent_t followed_ = nullptr;  // used by Follow, created at its first call
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_WORK_WORK_CONTEXT_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A CUDA event: a point in a stream's work that other streams, or the host,
// wait for.

#ifndef KERNELS_ENGINE_BASE_GPU_DEVICE_EVENT_H_
#define KERNELS_ENGINE_BASE_GPU_DEVICE_EVENT_H_

#include <cuda_runtime_api.h>

#include <memory>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

class DeviceEvent {
 public:
  // Records an event after all work enqueued on the stream. The stream's device
  // must be current.
  static Status Record(StreamView stream, std::shared_ptr<DeviceEvent>* event) {
    std::shared_ptr<DeviceEvent> made(new DeviceEvent);
    EV_CUDA_RETURN_IF_ERROR(
        cudaEventCreateWithFlags(&made->event_, cudaEventDisableTiming));
    EV_CUDA_RETURN_IF_ERROR(cudaEventRecord(made->event_, stream.get()));
    *event = std::move(made);
    return Status::OK();
  }
  ~DeviceEvent() {
    if (event_ != nullptr) EV_CUDA_LOG_IF_ERROR(cudaEventDestroy(event_));
  }
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;

  // Makes later work on the stream wait for the event.
  Status Before(StreamView stream) const {
    EV_CUDA_RETURN_IF_ERROR(cudaStreamWaitEvent(stream.get(), event_, 0));
    return Status::OK();
  }
  // Blocks the host until the event has passed.
  Status Wait() const {
    EV_CUDA_RETURN_IF_ERROR(cudaEventSynchronize(event_));
    return Status::OK();
  }
  bool has_passed() const { return cudaEventQuery(event_) == cudaSuccess; }
  // Returns true also if the work before the event has failed.
  bool IsThroughOrFailed() const {
    const cudaError_t error = cudaEventQuery(event_);
    // While the process exits, nothing is left to be done.
    if (error == cudaErrorCudartUnloading) return false;
    if (error != cudaErrorNotReady) return true;
    // cudaErrorNotReady may stay the thread's last error, and a later launch
    // would be blamed for it.
    cudaGetLastError();
    return false;
  }

 private:
  DeviceEvent() {}
  cudaEvent_t event_ = nullptr;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_DEVICE_EVENT_H_

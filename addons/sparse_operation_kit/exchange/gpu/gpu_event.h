// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_GPU_EVENT_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_GPU_EVENT_H_

#include <cuda_runtime_api.h>

#include <memory>
#include <utility>

#include "addons/sparse_operation_kit/exchange/stream_event.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/device_event.h"

namespace sok {
namespace gpu {

// A StreamEvent made of a CUDA event.
class GpuEvent : public StreamEvent {
 public:
  static ev::Status Make(int device, ev::gpu::StreamView stream,
                         std::shared_ptr<StreamEvent>* made) {
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device));
    std::shared_ptr<ev::gpu::DeviceEvent> event;
    EV_RETURN_IF_ERROR(ev::gpu::DeviceEvent::Record(stream, &event));
    *made = std::make_shared<GpuEvent>(device, std::move(event));
    return ev::Status::OK();
  }
  GpuEvent(int device, std::shared_ptr<ev::gpu::DeviceEvent> event)
      : device_(device), event_(std::move(event)) {}

  bool IsReached() override {
    // A thread without a current device would use GPU 0. During process exit
    // the runtime is gone, and nothing is left to do.
    if (cudaSetDevice(device_) == cudaErrorCudartUnloading) return false;
    return event_->IsThroughOrFailed();
  }
  ev::Status Before(const ev::DeviceStream& stream) override {
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    return event_->Before(static_cast<cudaStream_t>(stream.native));
  }
  ev::Status Wait() override {
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    return event_->Wait();
  }

 private:
  const int device_;
  const std::shared_ptr<ev::gpu::DeviceEvent> event_;
};

}  // namespace gpu
}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_GPU_EVENT_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepWork: the memory and the stream of a step's work on the GPU, and the
// event at the work's end. Memory that work in flight uses is kept until then.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_STEP_WORK_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_STEP_WORK_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/gpu/device_event.h"
#include "kernels/engine/base/gpu/in_flight_events.h"
#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/gpu/work/work_context.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

class StepWork {
 public:
  // outside: the caller's stream; null if outputs are in host memory.
  StepWork(int device, const DeviceStream* outside);
  StepWork(const StepWork&) = delete;
  StepWork& operator=(const StepWork&) = delete;

  int device() const { return device_; }
  const DeviceStream* outside() const { return outside_.get(); }

  // Acquires the step's context. Called once.
  Status Acquire(size_t host_bytes, size_t device_bytes);
  // Null until Acquire has succeeded.
  WorkContext* context() const { return context_.get(); }
  cudaStream_t stream() const { return context_->stream(); }
  // Pointers into the context's memory, by byte offset.
  template <typename T>
  T* OnDevice(size_t at) const {
    return reinterpret_cast<T*>(context_->device() + at);
  }
  template <typename T>
  T* OnHost(size_t at) const {
    return reinterpret_cast<T*>(context_->host() + at);
  }

  // Acquires another context, and keeps it.
  Status AcquireMore(size_t host_bytes, size_t device_bytes,
                     WorkContext** context);
  // Keeps a context, whose memory is used by work that may be in flight.
  void Keep(std::unique_ptr<WorkContext> context);
  // Allocates what 'count' more calls of Keep need. Throws std::bad_alloc.
  void ReserveKept(int count) { kept_.reserve(kept_.size() + count); }

  // Records end() after the work so far. Later work of 'outside' waits for it,
  // unless it is null.
  Status End(StreamView work, const DeviceStream* outside);
  // Event recorded after the last work; null if there is none yet.
  const std::shared_ptr<DeviceEvent>& end() const { return end_; }
  // Replaces end() by the event of work that comes after it.
  void MoveEnd(std::shared_ptr<DeviceEvent> end) { end_ = std::move(end); }
  // Events that the context's stream waits for.
  InFlightEvents* followed() { return &followed_; }

  // Between the two calls the state of work in flight is unknown. It stays so
  // if the second call is not made, because the calls between have failed.
  void Begin() { ++num_unknown_; }
  void Succeed() { --num_unknown_; }
  // Gives the contexts back. They are destroyed, which waits for their work, if
  // the state of work in flight is unknown.
  void Release();

 private:
  void ReleaseOne(std::unique_ptr<WorkContext> context) const;

  const int device_;
  const std::unique_ptr<const DeviceStream> outside_;
  std::unique_ptr<WorkContext> context_;
  std::vector<std::unique_ptr<WorkContext>> kept_;
  std::shared_ptr<DeviceEvent> end_;
  InFlightEvents followed_;
  int num_unknown_ = 0;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_STEP_WORK_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What one piece of work on a device needs from start to end: a stream, memory
// on the device, and pinned memory beside it. Lanes are kept and used again, so
// that a step in its steady state allocates nothing.

#ifndef KERNELS_ENGINE_BASE_GPU_WORK_LANE_H_
#define KERNELS_ENGINE_BASE_GPU_WORK_LANE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// Used by one piece of work at a time.
class WorkLane {
 public:
  WorkLane() {}
  ~WorkLane();
  WorkLane(const WorkLane&) = delete;
  WorkLane& operator=(const WorkLane&) = delete;

  static constexpr size_t kShareUnderWay = 32;

  // A lane of the current device with memory of at least that many bytes,
  // aligned to 256: of the idle ones the smallest that has it, else the
  // largest, which grows, else a new one. Where lanes that were given back busy
  // have more than 1/kShareUnderWay of the device's memory with it, it waits
  // for the oldest that has as much, and up to twice, if there is one.
  // ResourceExhausted.
  static Status Acquire(size_t host_bytes, size_t device_bytes,
                        std::unique_ptr<WorkLane>* lane);
  // Gives it back; REQUIRES that nothing is under way on it. A lane on which a
  // call failed is destroyed instead.
  static void Release(std::unique_ptr<WorkLane> lane);
  // The same while something may be under way on its stream: it is acquired
  // again when that is done.
  static void ReleaseBusy(std::unique_ptr<WorkLane> lane);

  char* host() const { return host_; }
  char* device() const { return memory_.as<char>(); }

  // Copies ordinary memory to the device through two small pinned buffers that
  // take turns; 'from' has been read when it returns.
  Status SendUp(const char* from, size_t bytes, char* to);

  // Copies [at, at + bytes) of the device's memory to ordinary memory, after
  // what the lane has been given so far; waits. By several threads at once.
  Status BringDown(size_t at, size_t bytes, void* to) const;

  cudaStream_t stream() const { return stream_; }
  // What the lane is given from now on comes after what the other stream has
  // been given so far. The processor does not wait.
  Status Follow(const DeviceStream& other);
  // Waits for all.
  Status Wait();

 private:
  Status Create();
  // Growing loses what was in the memory.
  Status Reserve(size_t host_bytes, size_t device_bytes);

  int device_number_ = -1;
  bool may_be_busy_ = false;
  cudaStream_t stream_ = nullptr;
  char* host_ = nullptr;  // pinned
  size_t host_bytes_ = 0;
  DeviceBuffer memory_;
  // SendUp uses it; made when SendUp is first called.
  char* turns_[2] = {nullptr, nullptr};
  cudaEvent_t sent_[2] = {nullptr, nullptr};
  cudaEvent_t followed_ = nullptr;  // of Follow, likewise
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_WORK_LANE_H_

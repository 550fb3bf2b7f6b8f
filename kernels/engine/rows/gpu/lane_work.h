// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// LaneWork: DeviceWork (rows/gpu_compute.h) on a lane (base/gpu/work_lane.h).

#ifndef KERNELS_ENGINE_ROWS_GPU_LANE_WORK_H_
#define KERNELS_ENGINE_ROWS_GPU_LANE_WORK_H_

#include <cuda_runtime_api.h>

#include <cstring>
#include <memory>
#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/work_lane.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/rows/gpu_compute.h"

namespace ev {
namespace gpu {

class LaneWork : public DeviceWork {
 public:
  LaneWork(int device, std::unique_ptr<WorkLane> lane)
      : device_(device), lane_(std::move(lane)) {}
  // If Wait was not called, the lane's destructor waits.
  ~LaneWork() override {
    if (lane_ != nullptr) EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
  }

  // Makes Wait copy 'bytes' from the lane's pinned memory after the device has
  // finished.
  void CopyAtEnd(const char* from, size_t bytes, float* to) {
    from_ = from;
    bytes_ = bytes;
    to_ = to;
  }

  bool copies_when_waited_for() const override { return to_ != nullptr; }
  Status Wait() override {
    if (lane_ == nullptr) return Status::OK();
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    EV_RETURN_IF_ERROR(lane_->Wait());
    if (to_ != nullptr) std::memcpy(to_, from_, bytes_);
    WorkLane::Release(std::move(lane_));
    return Status::OK();
  }

 private:
  const int device_;
  std::unique_ptr<WorkLane> lane_;
  const char* from_ = nullptr;
  size_t bytes_ = 0;
  float* to_ = nullptr;
};

// Copies 'part' to offset 'at' of the lane's pinned memory.
template <typename T>
void Put(Span<const T> part, size_t at, WorkLane* lane) {
  if (part.empty()) return;
  std::memcpy(lane->host() + at, part.data(), part.size() * sizeof(T));
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_LANE_WORK_H_

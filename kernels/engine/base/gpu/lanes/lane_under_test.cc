// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu/lanes/lane_under_test.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <thread>
#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/lanes/work_lane.h"
#include "kernels/engine/base/gpu/process_device.h"

namespace ev {
namespace gpu {
namespace {

void Hold(void* flag) {
  while (!static_cast<const std::atomic<bool>*>(flag)->load()) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace

LaneUnderTest::LaneUnderTest() {}
LaneUnderTest::~LaneUnderTest() {}

Status LaneUnderTest::MaxBytesInFlight(size_t* bytes) {
  int device = 0;
  EV_RETURN_IF_ERROR(ProcessDevice("this test needs", &device));
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device));
  size_t free = 0, total = 0;
  EV_CUDA_RETURN_IF_ERROR(cudaMemGetInfo(&free, &total));
  *bytes = total / WorkLane::kInFlightShare;
  return Status::OK();
}

void LaneUnderTest::WaitForAll() {
  EV_CUDA_LOG_IF_ERROR(cudaDeviceSynchronize());
}

Status LaneUnderTest::Acquire(size_t device_bytes) {
  return WorkLane::Acquire(0, device_bytes, &lane_);
}

Status LaneUnderTest::HoldUntil(const std::atomic<bool>* flag) {
  EV_CUDA_RETURN_IF_ERROR(cudaLaunchHostFunc(
      lane_->stream(), &Hold, const_cast<std::atomic<bool>*>(flag)));
  return Status::OK();
}

void LaneUnderTest::Release() { WorkLane::Release(std::move(lane_)); }

void LaneUnderTest::ReleaseBusy() { WorkLane::ReleaseBusy(std::move(lane_)); }

const void* LaneUnderTest::memory() const { return lane_->device(); }

}  // namespace gpu
}  // namespace ev

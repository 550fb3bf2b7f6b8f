// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A WorkLane for tests that include no CUDA header.

#ifndef KERNELS_ENGINE_BASE_GPU_LANES_LANE_UNDER_TEST_H_
#define KERNELS_ENGINE_BASE_GPU_LANES_LANE_UNDER_TEST_H_

#include <atomic>
#include <cstddef>
#include <memory>

#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

class WorkLane;

class LaneUnderTest {
 public:
  LaneUnderTest();
  ~LaneUnderTest();

  // Limit on the device memory of lanes in flight (work_lane.h).
  // FailedPrecondition without a GPU.
  static Status MaxBytesInFlight(size_t* bytes);
  // Waits for all work on the device.
  static void WaitForAll();

  Status Acquire(size_t device_bytes);
  // Keeps the lane's stream busy until the flag is set.
  Status HoldUntil(const std::atomic<bool>* flag);
  void Release();
  void ReleaseBusy();
  const void* memory() const;

 private:
  std::unique_ptr<WorkLane> lane_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_LANES_LANE_UNDER_TEST_H_

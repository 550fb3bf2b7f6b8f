// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Stand-in for a GpuStep (rows/gpu_step.h), for the rows of host_device_rows.h.
// Aborts the process if the caller breaks the contract:
//
//   an id is not put, or is put although it is in GPU memory;
//   Pool is called before Wait of all tables;
//   an output in host memory is not taken;
//   Update is called before Pool, or before Settle of its tables.

#ifndef KERNELS_ENGINE_TESTING_HOST_DEVICE_STEP_H_
#define KERNELS_ENGINE_TESTING_HOST_DEVICE_STEP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/engine/rows/gpu_compute.h"
#include "kernels/engine/rows/gpu_step.h"
#include "kernels/engine/testing/host_device_distinct.h"
#include "kernels/engine/testing/host_device_tally.h"

namespace ev {
namespace testing {

struct HostStepTable {
  int64_t dim = 0;
  std::shared_ptr<HostKnownKeys> keys;
  std::shared_ptr<HostTally> tally;  // null if the table keeps none
};

std::shared_ptr<GpuStep> MakeHostDeviceStep(Span<const GpuStepTable> tables,
                                            const DeviceStream* stream,
                                            std::vector<HostStepTable> rows);

// Return the number of steps so far, and of their updates.
int64_t HostDeviceSteps();
int64_t HostDeviceStepUpdates();

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_HOST_DEVICE_STEP_H_

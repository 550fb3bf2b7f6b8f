// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Stand-in for rows/gpu_step.h, for the rows of host_device_rows.h. Aborts the
// process if a promise is broken: if an id is not put, or put although it is in
// GPU memory, if the pooling begins before all tables were waited for, if an
// output in host memory is not taken, if an update begins before the pooling or
// without settling its table.

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
  std::shared_ptr<HostTally> tally;  // null: the table keeps none
};

std::shared_ptr<GpuStep> MakeHostDeviceStep(Span<const GpuStepTable> tables,
                                            const DeviceStream* stream,
                                            std::vector<HostStepTable> rows);

// Number of steps so far, and of their updates.
int64_t HostDeviceSteps();
int64_t HostDeviceStepUpdates();

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_HOST_DEVICE_STEP_H_

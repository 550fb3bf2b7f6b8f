// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// rows/gpu_step.h for the device of host_device_rows.h, which does the tables
// one after the other. It ends the process when a promise is broken: an id that
// is not put, or put although it is in the device's memory, handles that are
// not the unknown keys', a pooling before all tables have them, an update
// before the pooling.

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

// known, tallies: of each table; a null tally: it keeps none. learns: whether
// tables come to know unknown keys.
std::shared_ptr<GpuStep> MakeHostDeviceStep(
    Span<const GpuStepTable> tables, const DeviceStream& stream,
    std::vector<std::shared_ptr<HostKnownKeys>> known,
    std::vector<std::shared_ptr<HostTally>> tallies, bool learns);

// Steps that were made so far, and updates that they did.
int64_t HostDeviceSteps();
int64_t HostDeviceStepUpdates();

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_HOST_DEVICE_STEP_H_

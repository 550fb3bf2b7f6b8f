// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Stand-in for a GpuStep (rows/gpu_step.h), for the rows of host_device_rows.h.
// Aborts the process if the caller breaks the contract:
//
//   an id is not put, or is put although it is in GPU memory;
//   Pool is called before Start of all tables;
//   an output in host memory is not taken;
//   Update is called before Pool, or before Settle of its tables.

#ifndef KERNELS_ENGINE_TESTING_HOST_DEVICE_STEP_H_
#define KERNELS_ENGINE_TESTING_HOST_DEVICE_STEP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/rows/gpu_compute.h"
#include "kernels/engine/rows/gpu_step.h"
#include "kernels/engine/testing/host_device_counters.h"
#include "kernels/engine/testing/host_device_distinct.h"

namespace ev {
namespace testing {

// One table's samples to pool: distinct rows, and the row of each id.
struct HostPooling {
  Span<const RowHandle> rows;   // [U]
  Span<const int32_t> inverse;  // [N]
  Span<const int32_t> offsets;  // [B + 1]
  Combiner combiner = Combiner::kSum;
  const DeviceStream* stream = nullptr;  // of an output in GPU memory

  int64_t num_samples() const {
    return static_cast<int64_t>(offsets.size()) - 1;
  }
};

// One table's update: distinct rows, and the occurrences of each
// (combine/pooling_gradient.h).
struct HostPooledUpdate {
  std::string rule;
  Span<const float> hyper;
  Span<const RowHandle> rows;  // [U]; those that are no row are skipped
  Span<const int> slot_columns;
  Span<const int32_t> ends;     // [U]
  Span<const int32_t> samples;  // [N]
  Span<const float> factors;    // [B] or empty
  int64_t num_samples = 0;
  ConstFloats grads;  // in GPU memory
  DeviceGradients* put_grads = nullptr;
  const DeviceStream* stream = nullptr;
  const uint64_t* salt = nullptr;  // GpuStepUpdate::salt
};

// Operations of the rows for a step.
class HostStepRows {
 public:
  virtual ~HostStepRows() {}
  virtual void Pool(const HostPooling& pooling, MutableFloats out) = 0;
  virtual Status Update(const HostPooledUpdate& update) = 0;
};

struct HostStepTable {
  HostStepRows* rows = nullptr;
  int64_t dim = 0;
  std::shared_ptr<HostKnownKeys> keys;
  std::shared_ptr<HostCounters> counters;  // null if the table keeps none
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

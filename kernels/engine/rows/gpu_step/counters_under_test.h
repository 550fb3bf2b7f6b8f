// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// CountersUnderTest: updates pending counters without a step, for tests. An
// update covers two rows: the key of one has 3 ids, the key of the other 20.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_COUNTERS_UNDER_TEST_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_COUNTERS_UNDER_TEST_H_

#include <cstdint>

#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/row_meta.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/gpu/row_counters.h"

namespace ev {
namespace gpu {

class CountersUnderTest {
 public:
  static constexpr RowHandle kFew = 5, kMany = 3 << kCounterRowsLog2;

  // Makes this process's GPU current and reserves the counters of both rows.
  // FailedPrecondition: this process has no GPU.
  Status Make(RowCounters* counters);
  // Sets the pending counters of row kMany.
  Status Set(const RowMeta& meta);
  // Updates both rows' counters, and waits.
  Status Update(uint64_t version_plus1, uint32_t call);

 private:
  RowCounters* counters_ = nullptr;
  DeviceBuffer small_, longs_, counts_, table_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_COUNTERS_UNDER_TEST_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The home of a table whose hot rows are in the home of a GPU and whose other
// rows are in CPU memory, including their slots (device_cache.h). The device's
// kernels do all updates, so training gives the same bits as with all rows on
// the device. If a batch has more distinct rows than the device may hold, the
// CPU pools it, or sums its gradients, and the rows are updated on the device
// in several stretches.

#ifndef KERNELS_ENGINE_ROWS_HBM_DRAM_HBM_DRAM_ROWS_H_
#define KERNELS_ENGINE_ROWS_HBM_DRAM_HBM_DRAM_ROWS_H_

#include <cstdint>
#include <memory>

#include "kernels/engine/policy/cache_strategy.h"
#include "kernels/engine/rows/gpu_row_home.h"

namespace ev {

struct HbmDramRowsOptions {
  int64_t dim = 0;
  Span<const float> default_rows;  // [R, dim], as in GpuRowHomeOptions
  // Bytes for rows on the device: at least 64 rows without slots. With slots
  // the device still holds at least 64 rows.
  int64_t device_bytes = 0;
  CacheStrategy strategy = CacheStrategy::kLfu;
};

// Creates the device's rows by MakeGpuRowHome and returns its errors.
// InvalidArgument: device_bytes is too small, or too many default rows.
Status MakeHbmDramRows(const HbmDramRowsOptions& options,
                       std::unique_ptr<RowHome>* rows);

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_HBM_DRAM_HBM_DRAM_ROWS_H_

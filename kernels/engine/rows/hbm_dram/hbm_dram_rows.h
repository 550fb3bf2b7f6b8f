// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows of which the hot ones are in the home of a GPU and the others
// in CPU memory with their slots (device_cache.h). Whatever is trained is
// trained on that device, by its kernels, so a table trains to the same bits as
// one whose rows are all there. A batch that has more distinct rows than the
// device may hold is pooled, or its gradients summed, by the CPU, and its rows
// are updated on the device stretch by stretch.

#ifndef KERNELS_ENGINE_ROWS_HBM_DRAM_HBM_DRAM_ROWS_H_
#define KERNELS_ENGINE_ROWS_HBM_DRAM_HBM_DRAM_ROWS_H_

#include <cstdint>
#include <memory>

#include "kernels/engine/policy/cache_strategy.h"
#include "kernels/engine/rows/gpu_row_home.h"

namespace ev {

struct HbmDramRowsOptions {
  int64_t dim = 0;
  Span<const float> default_rows;  // [R, dim], as of GpuRowHomeOptions
  // Bytes of rows on the device. At least 64 rows without slots; with slots too
  // 64 rows are there at least.
  int64_t device_bytes = 0;
  CacheStrategy strategy = CacheStrategy::kLfu;
};

// Makes the device's rows by MakeGpuRowHome and passes on what that says.
// InvalidArgument: device_bytes is too little, or too many default rows.
Status MakeHbmDramRows(const HbmDramRowsOptions& options,
                       std::unique_ptr<RowHome>* rows);

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_HBM_DRAM_HBM_DRAM_ROWS_H_

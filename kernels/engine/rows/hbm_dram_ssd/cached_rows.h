// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The home of a table whose hot rows are in the home of a GPU and whose other
// rows, including their slots, are in a memory that the GPU cannot access
// (device_cache.h). The device's kernels do all updates, so training gives the
// same bits as with all rows on the device. If a batch has more distinct rows
// than the device may hold, the CPU pools it, or sums its gradients, and the
// rows are updated on the device in several stretches.

#ifndef KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_CACHED_ROWS_H_
#define KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_CACHED_ROWS_H_

#include <functional>
#include <memory>

#include "kernels/engine/rows/hbm_dram_ssd/host_rows.h"
#include "kernels/engine/rows/row_home.h"
#include "kernels/engine/rows/row_storage.h"
#include "kernels/engine/storage/tiered/use_ranks.h"

namespace ev {

// Creates the memory below the device's, which shares the ranks of its rows.
using MakeHostRows = std::function<Status(
    const std::shared_ptr<UseRanks>& ranks, std::unique_ptr<HostRows>* host)>;

// Creates the device's rows by MakeGpuRowHome and returns its errors.
// InvalidArgument: too many default rows. REQUIRES: memory_bytes is that of 64
// rows without slots, at least.
Status MakeRowsBelowDevice(const RowHomeOptions& options,
                           const MakeHostRows& make_host,
                           std::unique_ptr<RowHome>* rows);

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_CACHED_ROWS_H_

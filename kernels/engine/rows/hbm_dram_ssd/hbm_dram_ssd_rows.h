// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The home of a table whose hottest rows are in GPU memory
// (options.memory_bytes), whose next ones are in CPU memory
// (options.second_memory_bytes), and whose other rows are on an SSD. It is the
// cache of rows/hbm_dram_ssd/device_cache.h above the rows in CPU memory and a
// file of storage/ssd/tiered_rows.h. Rows include their slots. The GPU's
// kernels do all updates.

#ifndef KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_HBM_DRAM_SSD_ROWS_H_
#define KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_HBM_DRAM_SSD_ROWS_H_

#include <memory>

#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/row_home.h"
#include "kernels/engine/rows/row_storage.h"

namespace ev {

// Returns the errors of MakeRowsBelowDevice and MakeSsdRows.
Status MakeHbmDramSsdRows(const RowHomeOptions& options,
                          std::unique_ptr<RowHome>* rows);

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_HBM_DRAM_SSD_ROWS_H_

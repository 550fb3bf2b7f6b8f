// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The home of a table whose hottest rows are in the home of a GPU, whose next
// ones are in CPU memory, and whose other rows are on an SSD: the cache of
// hbm_dram/ in front of that of storage/ssd. Rows include their slots. The
// device's kernels do all updates.

#ifndef KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_HBM_DRAM_SSD_ROWS_H_
#define KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_HBM_DRAM_SSD_ROWS_H_

#include <memory>

#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/row_home.h"
#include "kernels/engine/rows/row_storage.h"

namespace ev {

// Returns the errors of MakeHbmDramRows and MakeSsdRows.
Status MakeHbmDramSsdRows(const RowHomeOptions& options,
                          std::unique_ptr<RowHome>* rows);

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_HBM_DRAM_SSD_ROWS_H_

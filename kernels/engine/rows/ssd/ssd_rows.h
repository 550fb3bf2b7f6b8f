// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The home of a table whose hot rows are in memory and whose other rows are in
// a file on an SSD (storage/ssd/tiered_rows.h). Rows are updated in memory by
// the CPU's row rules, so training gives the same bits as with all rows in
// memory.
//
// Environment variables, as in DeepRec: with TF_SSDHASH_ASYNC_COMPACTION=0 the
// file is compacted by calls that use rows instead of by a thread.
// TF_SSDHASH_IO_SCHEME=directio bypasses the system's page cache.

#ifndef KERNELS_ENGINE_ROWS_SSD_SSD_ROWS_H_
#define KERNELS_ENGINE_ROWS_SSD_SSD_ROWS_H_

#include <memory>

#include "kernels/engine/rows/row_home.h"
#include "kernels/engine/rows/row_storage.h"

namespace ev {

// FailedPrecondition: the directory cannot be used, or is in use.
Status MakeSsdRows(const RowHomeOptions& options,
                   std::unique_ptr<RowHome>* rows);

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_SSD_SSD_ROWS_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The home of a table with rows in GPU memory (options.memory_bytes), in CPU
// memory (options.second_memory_bytes) and on an SSD. It has two homes: one of
// rows that the GPU accesses, in its memory or in pinned CPU memory
// (rows/gpu_row_home.h), and below it one of rows on an SSD (rows/ssd), which
// keeps some of its rows in CPU memory. Each row is in one of the two. The
// GPU's key table has the keys of the rows that the GPU accesses.
//
// Reads and writes go to the home that has the row, and move no row. Rows move
// between the homes only in Bring (row_moves.h), which runs alone. So no call
// needs a lock or a hold for a row's place. A new row is made where the GPU
// accesses it, as long as there is room.
//
// SLOTS. The upper home has a fixed number of rows, the slots. A slot's number
// is the row's handle there, and in steps.

#ifndef KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_HBM_DRAM_SSD_ROWS_H_
#define KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_HBM_DRAM_SSD_ROWS_H_

#include <memory>

#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/row_home.h"
#include "kernels/engine/rows/row_storage.h"

namespace ev {

// Returns the errors of MakeGpuRowHome and MakeSsdRows.
Status MakeHbmDramSsdRows(const RowHomeOptions& options,
                          std::unique_ptr<RowHome>* rows);

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_HBM_DRAM_SSD_ROWS_H_

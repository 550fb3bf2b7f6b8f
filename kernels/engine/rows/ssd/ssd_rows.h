// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows of which the hot ones are in memory and the others in a file on an
// SSD (storage/ssd/tiered_rows.h). Rows are updated in memory by the CPU's row
// rules, so a table trains to the same bits as one whose rows are all there.
//
// The environment, as DeepRec has it: with TF_SSDHASH_ASYNC_COMPACTION=0 the
// calls that use rows empty the file's sparse segments, instead of a thread;
// TF_SSDHASH_IO_SCHEME=directio goes around the system's page cache.

#ifndef KERNELS_ENGINE_ROWS_SSD_SSD_ROWS_H_
#define KERNELS_ENGINE_ROWS_SSD_SSD_ROWS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/engine/policy/cache_strategy.h"
#include "kernels/engine/rows/row_home.h"

namespace ev {

struct SsdRowsOptions {
  std::string name;  // of the table
  int64_t dim = 0;
  Span<const float> default_rows;  // [R, dim]
  // The directory, of this table alone; with several ranks (HOROVOD_RANK or
  // OMPI_COMM_WORLD_RANK is set) each has rank_<k> in it.
  std::string path;
  int64_t memory_bytes = 0;  // of rows in memory
  CacheStrategy strategy = CacheStrategy::kLfu;
};

// FailedPrecondition: the directory cannot be used, or is in use.
Status MakeSsdRows(const SsdRowsOptions& options,
                   std::unique_ptr<RowHome>* rows);

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_SSD_SSD_ROWS_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Opens rows in memory and a file (storage/ssd/tiered_rows.h) by the options of
// a table and environment variables. Used by the homes with an SSD.

#ifndef KERNELS_ENGINE_ROWS_SSD_OPEN_TIERED_ROWS_H_
#define KERNELS_ENGINE_ROWS_SSD_OPEN_TIERED_ROWS_H_

#include <cstdint>
#include <memory>

#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/row_home.h"
#include "kernels/engine/rows/row_storage.h"
#include "kernels/engine/storage/ssd/tiered_rows.h"

namespace ev {

// memory_bytes: for rows in memory. ranks: those of the cache above, or null.
// FailedPrecondition: the directory cannot be used. InvalidArgument: too many
// default rows.
Status OpenTieredRows(const RowHomeOptions& options, int64_t memory_bytes,
                      const std::shared_ptr<UseRanks>& ranks,
                      std::unique_ptr<TieredRows>* rows);

TierStats StatsOf(const TieredRows& rows);

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_SSD_OPEN_TIERED_ROWS_H_

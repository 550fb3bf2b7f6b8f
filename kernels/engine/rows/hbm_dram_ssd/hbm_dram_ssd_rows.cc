// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/hbm_dram_ssd/hbm_dram_ssd_rows.h"

#include <utility>

#include "kernels/engine/rows/hbm_dram_ssd/cached_rows.h"
#include "kernels/engine/rows/hbm_dram_ssd/ssd_host_rows.h"
#include "kernels/engine/rows/ssd/open_tiered_rows.h"

namespace ev {

Status MakeHbmDramSsdRows(const RowHomeOptions& options,
                          std::unique_ptr<RowHome>* rows) {
  const auto make_host = [&options](const std::shared_ptr<UseRanks>& ranks,
                                    std::unique_ptr<HostRows>* host) {
    std::unique_ptr<TieredRows> tiers;
    EV_RETURN_IF_ERROR(
        OpenTieredRows(options, options.second_memory_bytes, ranks, &tiers));
    host->reset(new SsdHostRows(options.dim, std::move(tiers)));
    return Status::OK();
  };
  return MakeRowsBelowDevice(options, make_host, rows);
}

}  // namespace ev

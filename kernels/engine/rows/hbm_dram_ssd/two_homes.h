// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The two homes of a table in HBM_DRAM_SSDHASH (hbm_dram_ssd_rows.h), and which
// of them has each row.

#ifndef KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_TWO_HOMES_H_
#define KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_TWO_HOMES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/row_shape.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/rows/gpu_row_home.h"
#include "kernels/engine/rows/hbm_dram_ssd/slots.h"
#include "kernels/engine/rows/row_home.h"
#include "kernels/engine/storage/tiered/row_states.h"

namespace ev {

struct TwoHomes {
  TwoHomes(RowShape rows, std::unique_ptr<GpuRowHome> above,
           std::unique_ptr<RowHome> below)
      : shape(std::move(rows)), gpu(std::move(above)), ssd(std::move(below)) {}

  RowShape shape;  // changed only by calls that run alone
  const std::unique_ptr<GpuRowHome> gpu;  // the upper home
  const std::unique_ptr<RowHome> ssd;     // the lower home
  // By the table's handle: kInFastTier and the slot; or, for a row in the lower
  // home, the stamp of the last call that wrote it there.
  RowStates where;
  Slots slots;

  // 0: no row.
  uint32_t WhereIs(RowHandle handle) const {
    return where.Has(handle) ? where.at(handle)->load(std::memory_order_acquire)
                             : 0;
  }
  // Returns a stamp that differs from the last two billion.
  uint32_t NewStamp() { return 1 + stamps.fetch_add(1) % (kInFastTier - 1); }
  // Marks rows as in the lower home. Called after each write of them there, so
  // that a copy of a row is current if the row's stamp has not changed since
  // before it was made.
  void Stamp(Span<const RowHandle> handles) {
    const uint32_t stamp = NewStamp();
    for (const RowHandle handle : handles) where.at(handle)->store(stamp);
  }

  // Returns a number that no table has had in this process.
  static uint64_t NewLayout() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }

  std::atomic<uint32_t> stamps{0};
  // Changes with the columns. Copies of rows are of one layout.
  uint64_t layout = NewLayout();
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_TWO_HOMES_H_

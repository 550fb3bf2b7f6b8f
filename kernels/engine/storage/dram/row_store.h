// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The rows of one table in CPU memory.
//
// A row's address depends on its handle alone (slab_array.h): a shift, a mask,
// a multiplication and one load from a directory in the first-level cache.
// Nothing is stored per row except the row.
//
// Rows are allocated and freed with their handles (row_handles.h), slab by
// slab. A slab with one live row cannot be freed: rows do not move, because
// callers have computed addresses from handles.

#ifndef KERNELS_ENGINE_STORAGE_DRAM_ROW_STORE_H_
#define KERNELS_ENGINE_STORAGE_DRAM_ROW_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kernels/engine/base/prefetch.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/storage/dram/row_handles.h"
#include "kernels/engine/storage/dram/slab_array.h"

namespace ev {

// The handles of one table and their rows in CPU memory: [value dim floats]
// [slot 0 dim][slot 1 dim]..., adjacent, in slabs that never move. Allocate
// returns a row with unspecified contents. bytes() includes the rows' memory.
//
// Allocate, Row, Meta and the counters are thread-safe among themselves. Free,
// Relayout and Clear REQUIRE that no other call is running on this store.
class RowStore : public RowHandles {
 public:
  // floats_per_row = dim * (1 + number of slots), >= 1. Allocates nothing.
  RowStore(int64_t floats_per_row, bool with_meta);
  ~RowStore() override;

  // Returns the address of a live row, 4-byte aligned. Stable until Free,
  // Relayout or Clear.
  float* Row(RowHandle handle) const {
    return reinterpret_cast<float*>(rows_->Address(handle));
  }

  // A faster Row() for many rows. Valid for every row whose handle was
  // allocated before the view was made, until Free, Relayout or Clear. Make one
  // per group of handles: reinterpret_cast<float*>(view.Address(handle)).
  SlabView view() const { return rows_->view(); }

  // Prefetches the first 'floats' floats of a live row.
  void PrefetchRow(RowHandle handle, int64_t floats) const {
    PrefetchBytes(rows_->Address(handle), floats * sizeof(float));
  }

  // Changes floats_per_row. Keeps all handles and the first min(old, new)
  // floats of every row; fill(row) completes each live row. At most one slab is
  // in memory twice at any time. ResourceExhausted: nothing has changed.
  Status Relayout(int64_t floats_per_row,
                  const std::function<void(float* row)>& fill);

  int64_t floats_per_row() const { return floats_per_row_; }
  int64_t bytes() const override;

 private:
  bool AddRows(size_t slab) override;
  void UseRows(size_t slab, size_t rows) override;
  void DropRows(size_t slab) override;
  int DropAllRows() override;
  std::string AnotherRow() const override;

  int64_t floats_per_row_;
  std::unique_ptr<SlabArray> rows_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_DRAM_ROW_STORE_H_

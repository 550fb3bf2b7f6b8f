// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// (API sketch: the essay on slabs, huge pages and reuse belongs here.)

#ifndef KERNELS_ENGINE_STORAGE_DRAM_ROW_STORE_H_
#define KERNELS_ENGINE_STORAGE_DRAM_ROW_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {

// What a row counts about itself, kept beside the rows, 8 bytes, only when the
// table records it. Both saturate instead of wrapping.
struct RowMeta {
  uint32_t frequency;     // occurrences in training batches
  uint32_t version_plus1; // global step of the last update + 1; 0: none yet
};

// Rows of one table in CPU memory: [value dim floats][slot 0 dim][slot 1 dim]...,
// adjacent, in slabs that never move.
//
// Thread-safe for Allocate, Row, Meta and the counters among themselves. Free,
// Relayout and Clear REQUIRE that no other call is running on this store.
class RowStore {
 public:
  // floats_per_row = dim * (1 + number of slots).
  RowStore(int64_t floats_per_row, bool with_meta);
  ~RowStore();
  RowStore(const RowStore&) = delete;
  RowStore& operator=(const RowStore&) = delete;

  // A row with unspecified contents (its meta is zero). ResourceExhausted when
  // the system has no memory or the table has 2^31 rows already.
  Status Allocate(RowHandle* handle);

  // Gives rows back: the handles are given out again by later Allocates, and the
  // memory of a slab that has no live row left returns to the system.
  void Free(Span<const RowHandle> handles);

  // Address of a live row. Stable until Free, Relayout or Clear.
  float* Row(RowHandle handle) const;
  RowMeta* Meta(RowHandle handle) const;  // null without meta

  // Changes floats_per_row, keeping the first min(old, new) floats of every row
  // and all handles; fill(row) completes each live row. At most one slab exists
  // twice at any time.
  Status Relayout(int64_t floats_per_row,
                  const std::function<void(float* row)>& fill);

  void Clear();

  int64_t floats_per_row() const;
  int64_t live_rows() const;
  int64_t bytes() const;  // memory mapped for rows, meta and bookkeeping
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_DRAM_ROW_STORE_H_

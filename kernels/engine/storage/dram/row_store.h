// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The rows of one table in CPU memory, and what each row counts about itself.
//
// Where a row lies is a function of its handle alone (slab_array.h): a shift, a
// mask, a multiplication and one load from a directory that the first-level
// cache holds. Nothing is stored per row but the row.
//
// Handles are given out in ascending order, slab after slab, so a table that
// only grows is dense. A freed row waits in a list to be given out again. When
// every row of a slab has been freed, the slab's memory goes back to the system
// at once; its handles are then given out again before any new slab is begun.
// What cannot be returned is a slab of which one row lives on: rows do not
// move, since a handle is an address that others have computed with.
//
// Threads allocate from one of a few stripes, each holding some dozens of
// handles, so that inserting threads seldom meet.

#ifndef KERNELS_ENGINE_STORAGE_DRAM_ROW_STORE_H_
#define KERNELS_ENGINE_STORAGE_DRAM_ROW_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/engine/base/prefetch.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/spin_lock.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/storage/dram/slab_array.h"

namespace ev {

// What a row counts about itself, kept beside the rows, 16 bytes, only when the
// table records it.
struct RowMeta {
  // Global step of the last update + 1; 0: none yet. Steps may be times, in
  // milliseconds or finer.
  uint64_t version_plus1;
  uint32_t frequency;  // occurrences in training batches; saturates
  // Number of a call of the table: the one that updated the row last, or, if
  // the table's cache strategy keeps the first, the one that gave the row to
  // the table; 0: none has. It tells calls apart whose versions are equal, and
  // wraps.
  uint32_t call;

  int64_t version() const { return static_cast<int64_t>(version_plus1 - 1); }
  // What version_plus1 is of a version; -1 and below: none.
  static uint64_t PlusOne(int64_t version) {
    return version < 0 ? 0 : static_cast<uint64_t>(version) + 1;
  }
};

// Rows of one table in CPU memory: [value dim floats][slot 0 dim][slot 1
// dim]..., adjacent, in slabs that never move.
//
// Thread-safe for Allocate, Row, Meta and the counters among themselves. Free,
// Relayout and Clear REQUIRE that no other call is running on this store.
class RowStore {
 public:
  // floats_per_row = dim * (1 + number of slots), >= 1. Allocates nothing.
  RowStore(int64_t floats_per_row, bool with_meta);
  ~RowStore();
  RowStore(const RowStore&) = delete;
  RowStore& operator=(const RowStore&) = delete;

  // A row with unspecified contents (its meta is zero). ResourceExhausted when
  // the system has no memory or the table has 2^31 rows already; the store is
  // then as it was.
  Status Allocate(RowHandle* handle);

  // Gives rows back: the handles are given out again by later Allocates, and
  // the memory of a slab that has no live row left returns to the system. Each
  // handle must be live and named once.
  void Free(Span<const RowHandle> handles);

  // Address of a live row, 4-byte aligned. Stable until Free, Relayout or
  // Clear.
  float* Row(RowHandle handle) const {
    return reinterpret_cast<float*>(rows_->Address(handle));
  }
  // Null without meta.
  RowMeta* Meta(RowHandle handle) const {
    return meta_ == nullptr
               ? nullptr
               : reinterpret_cast<RowMeta*>(meta_->Address(handle));
  }

  // Row() of many rows, faster: good for every row whose handle was known when
  // the view was made, until Free, Relayout or Clear. Make one per group of
  // handles: reinterpret_cast<float*>(view.Address(handle)).
  SlabView view() const { return rows_->view(); }

  // Asks for the cache lines of the first 'floats' floats of a live row.
  void PrefetchRow(RowHandle handle, int64_t floats) const {
    PrefetchBytes(rows_->Address(handle), floats * sizeof(float));
  }

  // Changes floats_per_row, keeping the first min(old, new) floats of every row
  // and all handles; fill(row) completes each live row. At most one slab is in
  // memory twice at any time. ResourceExhausted: nothing has changed.
  Status Relayout(int64_t floats_per_row,
                  const std::function<void(float* row)>& fill);

  // Forgets all rows and returns their memory.
  void Clear();

  int64_t floats_per_row() const { return floats_per_row_; }
  int64_t live_rows() const;
  // Memory that the rows in use, their meta and the bookkeeping occupy, in
  // whole pages.
  int64_t bytes() const;

 private:
  struct Stripe;

  Status Refill(Stripe* stripe);
  bool NextRange();
  bool AddRowSlab(size_t slab);
  void DropRowSlab(size_t slab);
  void DrainStripes();
  void ReleaseEmptySlabs();
  std::vector<bool> FreeRows() const;
  size_t slab_rows() const { return rows_->slab_rows(); }

  int64_t floats_per_row_;
  std::unique_ptr<SlabArray> rows_;
  std::unique_ptr<SlabArray> meta_;  // null without meta
  std::unique_ptr<Stripe[]> stripes_;

  // All below: under mu_, or alone.
  mutable std::mutex mu_;
  std::vector<RowHandle> free_;         // reused first, last in first out
  std::vector<size_t> dropped_slabs_;   // begun again before a new one is
  std::vector<uint32_t> free_in_slab_;  // how many of free_ lie in each slab
  std::vector<uint32_t> meta_users_;    // row slabs per slab of meta
  uint64_t next_ = 0, end_ = 0;         // never used handles of one slab
  int64_t in_stripes_or_live_ = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_DRAM_ROW_STORE_H_

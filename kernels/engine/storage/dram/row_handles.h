// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The names of one table's rows, and what each row counts about itself. Where
// the rows' floats are is no matter here: in CPU memory beside the handles
// (row_store.h), in a GPU's, on an SSD.
//
// Handles are given out in ascending order, slab after slab, so a table that
// only grows is dense. A freed handle waits in a list to be given out again.
// When every handle of a slab has been freed, the slab's memory goes back to
// the system at once; its handles are then given out again before any new slab
// is begun.
//
// Threads allocate from one of a few stripes, each holding some dozens of
// handles, so that inserting threads seldom meet.

#ifndef KERNELS_ENGINE_STORAGE_DRAM_ROW_HANDLES_H_
#define KERNELS_ENGINE_STORAGE_DRAM_ROW_HANDLES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/row_meta.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/storage/dram/slab_array.h"

namespace ev {

// Thread-safe for Allocate, Meta and the counters among themselves. Free and
// Clear REQUIRE that no other call is running.
class RowHandles {
 public:
  // Of rows whose floats are elsewhere. Allocates nothing.
  explicit RowHandles(bool with_meta);
  virtual ~RowHandles();
  RowHandles(const RowHandles&) = delete;
  RowHandles& operator=(const RowHandles&) = delete;

  // A handle whose meta is zero. ResourceExhausted when the system has no
  // memory or the table has 2^31 rows already; all is then as it was.
  Status Allocate(RowHandle* handle);

  // Gives handles back: later Allocates give them out again, and the memory of
  // a slab that has no live row left returns to the system. Each handle must be
  // live and named once.
  void Free(Span<const RowHandle> handles);

  // Null without meta.
  RowMeta* Meta(RowHandle handle) const {
    return meta_ == nullptr
               ? nullptr
               : reinterpret_cast<RowMeta*>(meta_->Address(handle));
  }

  // Forgets all handles and returns their memory.
  void Clear();

  int64_t live_rows() const;
  // Memory that the meta of the rows in use and the bookkeeping occupy, in
  // whole pages.
  virtual int64_t bytes() const;

 protected:
  // Slabs of 2^rows_log2 handles.
  RowHandles(int rows_log2, bool with_meta);

  // --- For a store whose rows come and go with the handles, slab by slab.
  // Called under mu_ or alone ---

  // Gives the slab memory; false, with nothing changed, when there is none.
  virtual bool AddRows(size_t /*slab*/) { return true; }
  // Rows [0, rows) of the slab may be touched from now on.
  virtual void UseRows(size_t /*slab*/, size_t /*rows*/) {}
  virtual void DropRows(size_t /*slab*/) {}
  // Drops all; returns the rows_log2 of slabs from now on.
  virtual int DropAllRows() { return rows_log2_; }
  // "another row", for messages.
  virtual std::string AnotherRow() const { return "another row"; }

  // --- Of what is there. REQUIRE mu_ or being alone ---

  // Begins anew, with slabs of another size; no handle is live.
  void Restart(int rows_log2);
  // Handles that wait in stripes are free again.
  void DrainStripes();
  void ReleaseEmptySlabs();
  // By handle, for every slab that was ever begun.
  std::vector<bool> FreeRows() const;
  // visit(slab, begin, end): handles [begin, end) of it were given out once.
  template <typename Visit>
  void ForEachSlab(const Visit& visit) const {
    for (size_t slab = 0; slab < free_in_slab_.size(); ++slab) {
      if (free_in_slab_[slab] == kDropped) continue;
      const uint64_t begin = static_cast<uint64_t>(slab) * slab_rows();
      const bool open = next_ < end_ && (next_ >> rows_log2_) == slab;
      const uint64_t end =
          open ? next_
               : std::min<uint64_t>(begin + slab_rows(), kFirstReservedHandle);
      visit(slab, begin, end);
    }
  }
  size_t slab_rows() const { return size_t{1} << rows_log2_; }
  int rows_log2() const { return rows_log2_; }
  int64_t num_allocated() const { return in_stripes_or_live_; }
  size_t BookkeepingBytes() const;

  mutable std::mutex mu_;

 private:
  struct Stripe;
  static constexpr uint32_t kDropped = 0xFFFFFFFFu;

  Status Refill(Stripe* stripe);
  bool NextRange();
  bool AddSlab(size_t slab);
  void DropSlab(size_t slab);
  void MakeMeta();

  int rows_log2_;
  std::unique_ptr<SlabArray> meta_;  // null without meta
  std::unique_ptr<Stripe[]> stripes_;

  // All below: under mu_, or alone.
  std::vector<RowHandle> free_;        // reused first, last in first out
  std::vector<size_t> dropped_slabs_;  // begun again before a new one is
  // How many of free_ lie in each slab; kDropped: it has no memory.
  std::vector<uint32_t> free_in_slab_;
  std::vector<uint32_t> meta_users_;  // slabs of handles per slab of meta
  uint64_t next_ = 0, end_ = 0;       // never used handles of one slab
  int64_t in_stripes_or_live_ = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_DRAM_ROW_HANDLES_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The handles of one table's rows, and the counters of each row (RowMeta). The
// rows' floats are stored elsewhere: in CPU memory beside the handles
// (row_store.h), in GPU memory, or on an SSD.
//
// Handles are allocated in ascending order, slab by slab, so a table that only
// grows is dense. Freed handles go to a list for reuse. When every handle of a
// slab has been freed, the slab's memory is returned to the system at once, and
// its handles are reused before a new slab is started.
//
// Threads allocate from a few stripes, each with some dozens of handles, so
// that inserting threads seldom contend.

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

// Allocate, Meta and the counters are thread-safe among themselves. Free and
// Clear REQUIRE that no other call is running.
class RowHandles {
 public:
  // For rows whose floats are stored elsewhere. Allocates nothing.
  explicit RowHandles(bool with_meta);
  virtual ~RowHandles();
  RowHandles(const RowHandles&) = delete;
  RowHandles& operator=(const RowHandles&) = delete;

  // Returns a handle whose meta is zero. ResourceExhausted if the system has no
  // memory or the table has 2^31 rows already; nothing has changed then.
  Status Allocate(RowHandle* handle);

  // Allocates what a Free of that many handles needs, so that it cannot fail.
  // Throws std::bad_alloc.
  void ReserveFree(size_t handles);
  // Frees handles for reuse. The memory of a slab without a live row is
  // returned to the system, unless there is no memory to list it. Each handle
  // must be live and occur once. Throws std::bad_alloc, and frees none then.
  void Free(Span<const RowHandle> handles);

  // Returns null without meta.
  RowMeta* Meta(RowHandle handle) const {
    return meta_ == nullptr
               ? nullptr
               : reinterpret_cast<RowMeta*>(meta_->Address(handle));
  }

  // Frees all handles and their memory.
  void Clear();

  int64_t live_rows() const;
  // Memory, in whole pages, of the bookkeeping and of the meta of rows in use.
  virtual int64_t bytes() const;

 protected:
  // Slabs of 2^rows_log2 handles.
  RowHandles(int rows_log2, bool with_meta);

  // --- Overridden by a store that keeps rows slab by slab. Called under mu_ or
  // by the only user ---

  // Allocates the slab. Returns false, with nothing changed, without memory.
  virtual bool AddRows(size_t /*slab*/) { return true; }
  // Rows [0, rows) of the slab may be used from now on.
  virtual void UseRows(size_t /*slab*/, size_t /*rows*/) {}
  virtual void DropRows(size_t /*slab*/) {}
  // Drops all slabs; returns the rows_log2 of later slabs.
  virtual int DropAllRows() { return rows_log2_; }
  // Name of a row in messages.
  virtual std::string AnotherRow() const { return "another row"; }

  // --- Helpers for such a store. REQUIRE mu_ or being the only user ---

  // Starts over with slabs of another size. No handle may be live. Throws
  // std::bad_alloc, and changes nothing then.
  void Restart(int rows_log2);
  // Moves the handles in stripes to the free list. Throws std::bad_alloc, and
  // moves none then.
  void DrainStripes();
  void ReleaseEmptySlabs();
  // By handle, for all slabs that were ever started.
  std::vector<bool> FreeRows() const;
  // Calls visit(slab, begin, end) for each slab in memory. Its handles [begin,
  // end) have been allocated at least once.
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
  static std::unique_ptr<SlabArray> MakeMeta(int rows_log2);
  void ReserveFreeLocked(size_t handles);

  int rows_log2_;
  std::unique_ptr<SlabArray> meta_;  // null without meta
  std::unique_ptr<Stripe[]> stripes_;

  // The following are accessed under mu_, or by the only user.
  std::vector<RowHandle> free_;        // reused first; last in, first out
  std::vector<size_t> dropped_slabs_;  // reused before a new slab is started
  // Number of entries of free_ in each slab; kDropped: the slab has no memory.
  std::vector<uint32_t> free_in_slab_;
  std::vector<uint32_t> meta_users_;  // slabs of handles per slab of meta
  uint64_t next_ = 0, end_ = 0;       // never used handles of one slab
  int64_t in_stripes_or_live_ = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_DRAM_ROW_HANDLES_H_

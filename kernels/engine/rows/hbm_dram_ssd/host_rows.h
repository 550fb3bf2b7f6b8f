// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The memory below a DeviceCache: the rows of one table that are not on the
// device, and copies of rows that were only read since they arrived there.
// Implementations: CPU memory with an SSD below it (ssd_host_rows.h), and for
// tests CPU memory (memory_host_rows.h).
//
// A row here has a number, below kInFastTier - 1. It has the value, the slots,
// and the rank that the cache stored with it. Only the thread that moves the
// row of its handle may call Write, Read and SetRank for it. That thread calls
// Free, or a thread that holds the row on the device and is about to write it.
// Other threads may only Visit it, between a look at the row state of the
// handle and the end of a ReadLock that they took before.
//
// All calls but Free, Unreserve and SetRank may throw std::bad_alloc; then
// nothing has changed, except that Write has left unspecified contents in rows
// that were allocated.

#ifndef KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_HOST_ROWS_H_
#define KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_HOST_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <shared_mutex>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/row_home.h"

namespace ev {

class HostRows {
 public:
  using Row = RowHandle;
  using ReadLock = std::shared_lock<std::shared_mutex>;

  virtual ~HostRows() {}

  // --- Thread-safe: any number of threads may call these at once ---

  // Prepares for rows of this handle. ResourceExhausted: nothing has changed.
  virtual Status AddHandle(RowHandle handle) = 0;
  // Returns a row with unspecified contents for the handle. is_reserved: it
  // uses the reservation. ResourceExhausted.
  virtual Status Allocate(RowHandle handle, bool is_reserved, Row* row) = 0;
  // Frees rows for reuse, before new memory is allocated.
  virtual void Free(Span<const Row> rows) = 0;

  // Sets the contents and ranks of rows, which come from the device. floats:
  // [N, floats per row]. A row that was not allocated since must have the
  // contents that it had. Errors: those of the memory; the contents of rows
  // that were allocated are then unspecified, the others are unchanged.
  virtual Status Write(Span<const Row> rows, bool is_reserved,
                       const float* floats, const uint32_t* ranks) = 0;
  // Copies the contents and ranks of rows.
  virtual Status Read(Span<const Row> rows, float* floats, uint32_t* ranks) = 0;
  // Returns whether the row is in memory, and not only on an SSD. If not, a row
  // that leaves the device is written even if its contents have not changed.
  virtual bool IsInMemory(Row row) const = 0;
  // Sets the rank of a row in memory.
  virtual void SetRank(Row row, uint32_t rank) = 0;
  // Returns whether a read of the row would read a file.
  virtual bool IsStored(Row row) const = 0;

  // While the lock is held, rows keep their contents even if they are freed.
  ReadLock KeepContents() { return ReadLock(mu_); }
  // Calls body(k, floats of rows[k]) for each row. REQUIRES a ReadLock.
  virtual Status Visit(
      Span<const Row> rows,
      const std::function<void(size_t k, const float* row)>& body) = 0;

  // Reserves room: Allocate and Write calls for that many rows, with
  // is_reserved, cannot fail for lack of room until Unreserve. All reservations
  // together need at most room for 'most' rows in use. ResourceExhausted:
  // nothing has changed.
  virtual Status Reserve(int64_t rows, int64_t most) = 0;
  virtual void Unreserve(int64_t rows) = 0;

  // Adds the rows and bytes of this memory to those of a cache's stats, and the
  // stats of a memory below this one to *below.
  virtual void AddStats(TierStats* stats, TierStats* below) const = 0;
  virtual int64_t bytes() const = 0;  // of CPU memory

  // --- REQUIRE that no other call is running ---

  // Appends slots to all rows, with these initial values. Errors: nothing has
  // changed.
  virtual Status AddSlots(Span<const float> initial_values) = 0;
  // Reverts AddSlots, which was called last.
  virtual Status RemoveSlots(size_t count) = 0;
  // Deletes the handles, which have these rows, and returns memory that holds
  // no row to the system.
  virtual void Forget(Span<const RowHandle> handles, Span<const Row> rows) = 0;
  // Deletes all handles and rows. Rows have that many slots from now on.
  virtual void Clear(size_t num_slots) = 0;

 protected:
  // Held shared by ReadLocks, exclusively by a thread that changes the contents
  // of freed rows.
  std::shared_mutex mu_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_HOST_ROWS_H_

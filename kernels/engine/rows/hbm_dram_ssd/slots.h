// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The slots of a home with rows in three memories (hbm_dram_ssd_rows.h): which
// row each has, which are free, and which rows leave.

#ifndef KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_SLOTS_H_
#define KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_SLOTS_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {

class Slots {
 public:
  // A row's handle in the home above.
  using Slot = RowHandle;
  struct Row {
    int64_t key = 0;
    RowHandle handle = kNoRow;  // kNoRow: the slot is free
    uint32_t arrived = 0;       // number of the last Bring before it came
  };

  // --- Thread-safe. Take and Resize may throw std::bad_alloc ---

  // Returns a free slot, which has the row now; kNoRow if there is none.
  // is_new: the row has not come from below.
  Slot Take(int64_t key, RowHandle handle, bool is_new);
  void GiveBack(Span<const Slot> slots);
  // Sets handles[i] to the handle of the row in slots[i]; kNoRow if it has
  // none.
  void FindHandles(Span<const Slot> slots, RowHandle* handles) const;
  int64_t num_free() const;
  int64_t bytes() const;

  // Returns whether there are fewer free slots than rows have been made in the
  // busiest calls of late. Call it once per lookup.
  bool NeedsRoom();
  // Number of slots that are to be free for new rows.
  int64_t room() const;

  // --- REQUIRE that no other call is running ---

  // Sets the number of slots. All are free.
  void Resize(int64_t capacity);
  int64_t capacity() const { return capacity_; }
  // Number of slots that have ever had a row, from 0 on.
  int64_t num_used() const { return static_cast<int64_t>(rows_.size()); }
  const Row& at(Slot slot) const { return rows_[slot]; }
  void StartBring() { ++brings_; }
  // Returns up to n slots whose rows are to leave; fewer if the others are
  // free or in 'stays', [>= num_used()]. read_worth(first, worth): see
  // GpuRowHome::ReadWorth. If it is null, all are worth the same.
  using ReadWorth = std::function<Status(Slot first, Span<uint32_t> worth)>;
  Status Choose(int64_t n, const std::vector<bool>& stays,
                const ReadWorth& read_worth, std::vector<Slot>* chosen);

 private:
  struct Candidate {
    uint64_t rank;  // the least leave
    Slot slot;
    bool operator<(const Candidate& other) const { return rank < other.rank; }
  };

  // Adds the slots from the hand plus 'begin' to the hand plus 'end' whose rows
  // may leave. 'begin' and 'end' count around.
  Status LookAt(int64_t begin, int64_t end, const std::vector<bool>& stays,
                const ReadWorth& read_worth,
                std::vector<Candidate>* candidates) const;
  int64_t FreeLocked() const {
    return capacity_ - num_used() + static_cast<int64_t>(free_.size());
  }

  mutable std::mutex mu_;
  int64_t capacity_ = 0;
  std::vector<Row> rows_;   // by slot
  std::vector<Slot> free_;  // of rows_; has room for all of them
  // New rows since the last NeedsRoom, and the decaying maximum of these
  // numbers.
  int64_t made_ = 0, demand_ = 0;
  uint32_t brings_ = 0;
  int64_t hand_ = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_SLOTS_H_

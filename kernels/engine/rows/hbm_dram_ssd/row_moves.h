// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Moves rows between the two homes of a table (two_homes.h). All file reads,
// and the copies to and from the lower home, run on the threads of the call.
//
// WHICH ROWS LEAVE. A hand goes round the slots. Of the slots that it visits,
// those leave that lookups and updates have used least, as counted by the GPU,
// by the cache strategy (policy/cache_strategy.h). With FIFO, those leave that
// came first.

#ifndef KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_ROW_MOVES_H_
#define KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_ROW_MOVES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/policy/cache_strategy.h"
#include "kernels/engine/rows/gpu_compute.h"
#include "kernels/engine/rows/hbm_dram_ssd/two_homes.h"

namespace ev {

class RowMoves : public RowsBelow {
 public:
  RowMoves(TwoHomes* homes, CacheStrategy strategy)
      : homes_(*homes), strategy_(strategy) {}

  bool NeedsRoom() override { return homes_.slots.NeedsRoom(); }
  std::unique_ptr<RowCopies> Copy(Span<const RowHandle> handles,
                                  Parallel* parallel) override;
  Status Bring(Span<const int64_t> keys, Span<const RowHandle> handles,
               const RowCopies* copies, Parallel* parallel,
               Brought* brought) override;
  // Moves all rows to the lower home. Must run alone.
  Status MoveAllDown();

  // Rows that Bring has moved up, and how many of them were in the file.
  int64_t num_up() const { return num_up_.load(); }
  int64_t num_from_file() const { return num_from_file_.load(); }
  // Uses that the lower home has counted for rows that moved down.
  int64_t hits_of_moves() const { return hits_of_moves_.load(); }
  int64_t misses_of_moves() const { return misses_of_moves_.load(); }

 private:
  struct Coming;
  struct Plan;
  class Columns;
  class Copies;

  Plan MakePlan(Span<const RowHandle> handles, Parallel* parallel) const;
  Status MakeRoom(const Plan& plan, Parallel* parallel, bool* moved_down);
  // After an error each row is in one home.
  Status MoveDown(Span<const Slots::Slot> slots, Parallel* parallel);
  Status MoveSomeDown(Span<const Slots::Slot> slots, Parallel* parallel);
  Status WriteBelow(Span<const RowHandle> handles, const Columns& columns,
                    Parallel* parallel);
  Status MoveUp(Span<const Coming> rows, Span<const int64_t> keys,
                const Copies* copies, Parallel* parallel);
  Status ReadBelow(Span<const Coming> rows, const Copies* copies, size_t first,
                   Columns* columns) const;
  Status WriteAbove(Span<const RowHandle> handles, Span<const int64_t> keys,
                    const Columns& columns, size_t first,
                    std::vector<Slots::Slot>* slots);

  TwoHomes& homes_;
  const CacheStrategy strategy_;
  std::atomic<int64_t> num_up_{0}, num_from_file_{0};
  std::atomic<int64_t> hits_of_moves_{0}, misses_of_moves_{0};
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_ROW_MOVES_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The storage of one table's rows. Every table has one home, whatever memory
// its rows are in:
//
//   dram/          all rows in CPU memory.
//   ssd/           the hot rows in CPU memory, the others on an SSD.
//   gpu/           all rows in a GPU's memory, or the hot ones, and the others
//                  in CPU memory, which the GPU accesses too.
//   hbm_dram_ssd/  the hot rows like gpu/, the others like ssd/.
//
// The table keeps its index, its handles and the counters of each row (RowMeta:
// frequency, version). A home keeps the floats. A home in GPU memory may also
// keep pending counters: the counts since the table's RowMeta was last updated
// (gpu_compute.h). The table assigns a handle to each row; table and home
// identify the row by it. make_row_home.h creates homes.
//
// A row has columns (base/row_shape.h): column 0 is the value, dim numbers;
// column 1 + k is slot k, dim floats or one. Below, 'width' is that of the
// column. Values may be of a narrow type: reads widen them, writes round them
// to nearest, and Apply rounds stochastically if it gets salts.
//
// THREADS. All calls may run concurrently except Relayout, Forget and Clear,
// which must run alone. The caller prevents two concurrent calls from writing
// the same row. A read concurrent with a write of the same row sees either
// state of each element.
//
// Calls return when the rows are read or written. Errors do not name the table;
// the caller adds its name.

#ifndef KERNELS_ENGINE_ROWS_ROW_HOME_H_
#define KERNELS_ENGINE_ROWS_ROW_HOME_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/row_shape.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {

class GpuRowCompute;    // gpu_compute.h
class GpuTableCompute;  // gpu_compute.h
class RowRule;          // optimizer/row_rule.h

// Rows that stay addressable while this object lives. REQUIRES: it is destroyed
// before a call that must run alone.
class RowHold {
 public:
  virtual ~RowHold() {}
};

// The amounts of work that suit a home. They decide how work is cut, and do not
// change results.
struct RowHomeCosts {
  // Whether the cost of a call itself is negligible even for few rows, and a
  // Hold creates no RowHold. If so, callers may make a separate call for every
  // few dozen rows.
  bool calls_are_cheap = false;
  // Rows per Read or Write.
  int64_t rows_per_copy = 0;
  // Rows per Hold, or per Read if they cannot be held.
  int64_t rows_per_hold = 0;
  // Floats of gradients per task of an update, and rows per Apply in it.
  int64_t floats_per_update = 0;
  int64_t rows_per_apply = 0;
  // Whether several threads that write different rows at once are faster than
  // one. If false, concurrent updates of one table write its rows one call at a
  // time.
  bool writes_side_by_side = false;

  // Costs of rows behind a link, where a call takes some tens of microseconds.
  static RowHomeCosts OfDistantMemory() {
    RowHomeCosts costs;
    // Half a millisecond of a link, which outweighs the time of the call
    // itself.
    costs.rows_per_copy = costs.rows_per_hold = 16384;
    costs.floats_per_update = costs.rows_per_apply = int64_t{1} << 18;
    return costs;
  }
};

// Statistics of two tiers of a home, one above the other: two memories, or
// memory and an SSD. For a table with all rows in GPU memory, memory_rows
// counts these. `hits` are then ids of lookups and updates found by the GPU,
// and `misses` ids looked up on the CPU.
struct TierStats {
  int64_t memory_rows = 0, stored_rows = 0, stored_bytes = 0;
  // Since creation: rows used in the faster tier, rows used that were not in
  // it, and bytes written to the slower tier.
  int64_t hits = 0, misses = 0, written_bytes = 0;
  // Since creation, of rows in GPU and CPU memory: rows that moved to GPU
  // memory and out of it, and bytes that the GPU read and wrote in CPU memory
  // for lookups, updates and moves.
  int64_t moved_up = 0, moved_down = 0, link_bytes = 0;
};

// A home that keeps hot rows in a fast tier and the others in one or two slower
// ones.
class RowTiers {
 public:
  virtual ~RowTiers() {}
  // Moves rows to the fast tier, as far as there is room. Handles without a row
  // are allowed.
  virtual Status Prefetch(Span<const RowHandle> handles) = 0;
  // Returns the number of the row's tier; 0 is the fastest.
  virtual int TierOf(RowHandle handle) const = 0;
  // The two fastest tiers.
  virtual TierStats tier_stats() const = 0;
  // The second tier, as the faster one, and the third; zeros if there are two.
  virtual TierStats tier_stats_below() const { return TierStats(); }
};

class RowHome {
 public:
  virtual ~RowHome() {}

  // --- Store ---

  // Creates a row for the handle: default row 'default_row', slots at their
  // initial values. ResourceExhausted, with the needed and free bytes, if
  // memory is short; nothing has changed then.
  virtual Status NewRow(RowHandle handle, int64_t default_row) = 0;

  // Reads one column: out[i, :] is that of the row at handles[i], [N,
  // width]. Unspecified for a handle without a row (row_handle.h).
  virtual Status Read(Span<const RowHandle> handles, int column,
                      float* out) = 0;
  // Reads several columns: out[c][i, :] is columns[c] of the row at handles[i].
  // For a caller that reads all rows once, so the reads do not make rows hot.
  // All handles must have rows, and no other call may write these rows
  // meanwhile.
  virtual Status ReadColumnsOnce(Span<const RowHandle> handles,
                                 Span<const int> columns,
                                 Span<float* const> out) {
    for (size_t c = 0; c < columns.size(); ++c) {
      EV_RETURN_IF_ERROR(Read(handles, columns[c], out[c]));
    }
    return Status::OK();
  }
  // Sets out[i] to the sum of the squares of row i's value, computed in double
  // from the first element to the last (SumOfSquares of policy/eviction.h). All
  // handles must have rows.
  virtual Status SquaredNorms(Span<const RowHandle> handles, double* out) = 0;

  // Writes one column, the reverse of Read. All handles must have rows and be
  // distinct.
  virtual Status Write(Span<const RowHandle> handles, int column,
                       const float* in) = 0;

  // Reserves room, so that Write and Apply calls on that many rows cannot fail
  // for lack of room until Unreserve. ResourceExhausted.
  virtual Status Reserve(int64_t /*rows*/) { return Status::OK(); }
  virtual void Unreserve(int64_t /*rows*/) {}

  // Sets the slots of all rows; existing slots come first, with their widths.
  // New slots get their initial value in every row. Must run alone. At most
  // two blocks of the rows at a time are in memory twice. If memory is short,
  // returns an error and changes nothing. InvalidArgument: a width that this
  // home does not support.
  virtual Status Relayout(Span<const SlotShape> slots) = 0;

  // Deletes the rows of these handles, which NewRow may use again, and frees
  // memory that holds no row. Must run alone.
  virtual void Forget(Span<const RowHandle> handles) = 0;
  // Deletes all rows and frees their memory. Must run alone.
  virtual void Clear() = 0;

  // GPU memory and CPU memory together.
  virtual int64_t bytes() const = 0;

  // --- Hold ---

  // Makes rows addressable. If *held is true, rows[i] is the address of the row
  // at handles[i], its value first (of the home's type), while *hold lives;
  // unchanged for a handle without a row. Rows may be written meanwhile
  // (base/row_math.h). *hold is null if rows keep their addresses until a call
  // that must run alone.
  //
  // *held is false, and nothing is done, if the CPU cannot address that many
  // rows at once. Use Read to copy them then.
  virtual Status Hold(Span<const RowHandle> handles, const float** rows,
                      std::unique_ptr<RowHold>* hold, bool* held) = 0;

  // --- Compute ---

  // Applies a rule to distinct rows; handles without a row are skipped.
  // slot_columns: one per slot of the rule, 0 for the first slot. grads: [N,
  // dim]. salts: with narrow values, one per row for stochastic rounding
  // (base/random_rounding.h), or null for rounding to nearest.
  virtual Status Apply(const RowRule& rule, Span<const RowHandle> handles,
                       Span<const int> slot_columns, const float* grads,
                       const uint64_t* salts) = 0;
  // Returns how many times Apply has made a row's value infinite by rounding it
  // to a narrow type, since creation.
  virtual int64_t overflows() const { return 0; }

  virtual const RowHomeCosts& costs() const = 0;

  // --- Optional capabilities; null in homes without them ---

  virtual RowTiers* tiers() { return nullptr; }
  // The GPU accesses all rows, or some: pooling and summed updates.
  virtual GpuRowCompute* gpu() { return nullptr; }
  // The GPU accesses all rows.
  virtual GpuTableCompute* gpu_table() { return nullptr; }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_ROW_HOME_H_

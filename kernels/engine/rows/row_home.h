// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Where the rows of one table live. Every table has one home, whatever memory
// its rows are in:
//
//   dram/      all rows in CPU memory
//   ssd/       the hot rows in CPU memory, the others on an SSD
//   gpu/       all rows in a GPU's memory
//   hbm_dram/  the hot rows in a GPU's memory, the others in CPU memory
//
// The table keeps its index, its handles and what rows count about themselves
// (RowMeta: frequency, version). A home keeps the floats, and a GPU's may keep
// a tally of what rows have counted since (gpu_compute.h). A handle, which the
// table gives out, names a row in both. make_row_home.h makes homes.
//
// A row has columns: column 0 is the value, column 1 + k is slot k, each of dim
// floats.
//
// THREADS. All calls may be made at once but Relayout, Forget and Clear, which
// are made alone. The caller keeps two calls apart that write the same row. A
// read beside a write of the same row sees either state of each element.
//
// Calls return when the rows are read or written. Errors do not name the table:
// the caller does.

#ifndef KERNELS_ENGINE_ROWS_ROW_HOME_H_
#define KERNELS_ENGINE_ROWS_ROW_HOME_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {

class GpuRowCompute;    // gpu_compute.h
class GpuTableCompute;  // gpu_compute.h
class RowRule;          // optimizer/row_rule.h

// Rows that stay addressable for as long as this lives. REQUIRES that it is
// destroyed before a call that is made alone.
class RowHold {
 public:
  virtual ~RowHold() {}
};

// How much work a home wants at once. It decides how work is cut, and no bit of
// what is computed.
struct RowHomeCosts {
  // Whether a call costs next to nothing beside its rows, however few those
  // are, and a Hold makes no RowHold: callers may then make one for every few
  // dozen rows.
  bool calls_are_cheap = false;
  // Rows of one Read or Write.
  int64_t rows_per_copy = 0;
  // Rows of one Hold, or of a Read where they cannot be held.
  int64_t rows_per_hold = 0;
  // Floats of gradients of one task of an update, and rows of one Apply in it.
  int64_t floats_per_update = 0;
  int64_t rows_per_apply = 0;
  // Whether calls that write different rows at once are any faster. Otherwise
  // one call at a time writes the rows of a table that several updates share.
  bool writes_side_by_side = false;

  // Of rows behind a link, where a call costs some tens of us.
  static RowHomeCosts OfDistantMemory() {
    RowHomeCosts costs;
    // Half a ms of a link, and enough to make little of the call's own time.
    costs.rows_per_copy = costs.rows_per_hold = 16384;
    costs.floats_per_update = costs.rows_per_apply = int64_t{1} << 18;
    return costs;
  }
};

// Where the rows of a home with two memories are, or with a memory and an SSD.
// Of a table whose rows are all in a GPU's memory: memory_rows are those, and
// 'hits' and 'misses' are ids of lookups and updates, of which the GPU found
// the keys by itself, and for which the processors had to.
struct TierStats {
  int64_t memory_rows = 0, stored_rows = 0, stored_bytes = 0;
  // Since creation: rows used that were in the faster tier, that were not,
  // bytes written to the slower one.
  int64_t hits = 0, misses = 0, written_bytes = 0;
};

// A home that keeps hot rows in a fast tier and the others in a slow one.
class RowTiers {
 public:
  virtual ~RowTiers() {}
  // Brings rows to the fast tier, as far as there is room. Handles may be of no
  // row.
  virtual Status Prefetch(Span<const RowHandle> handles) = 0;
  // Whether the row is in the fast tier.
  virtual bool IsInMemory(RowHandle handle) const = 0;
  virtual TierStats tier_stats() const = 0;
};

class RowHome {
 public:
  virtual ~RowHome() {}

  // --- Store ---

  // Has a row for that handle: default row 'default_row', slots at their
  // initial values. ResourceExhausted, with what is needed and free, when
  // memory is short; nothing has changed then.
  virtual Status NewRow(RowHandle handle, int64_t default_row) = 0;

  // out[i, :] = column of the row at handles[i], [N, dim]; unspecified where
  // the handle is of no row (row_handle.h).
  virtual Status Read(Span<const RowHandle> handles, int column,
                      float* out) = 0;
  // out[c][i, :] = columns[c] of the row at handles[i], for a caller that goes
  // over all rows once: they do not become hot by it. Handles are rows, which
  // no other call writes.
  virtual Status ReadColumnsOnce(Span<const RowHandle> handles,
                                 Span<const int> columns,
                                 Span<float* const> out) {
    for (size_t c = 0; c < columns.size(); ++c) {
      EV_RETURN_IF_ERROR(Read(handles, columns[c], out[c]));
    }
    return Status::OK();
  }
  // out[i] = the sum of the squares of row i's value, formed in double from the
  // first element to the last (SumOfSquares of policy/eviction.h). Handles are
  // rows.
  virtual Status SquaredNorms(Span<const RowHandle> handles, double* out) = 0;

  // The reverse of Read. Handles are rows, each named once.
  virtual Status Write(Span<const RowHandle> handles, int column,
                       const float* in) = 0;

  // Before Write and Apply calls on so many rows: makes sure that they cannot
  // fail for want of room, until Unreserve. ResourceExhausted.
  virtual Status Reserve(int64_t /*rows*/) { return Status::OK(); }
  virtual void Unreserve(int64_t /*rows*/) {}

  // Makes the rows hold these slots, of which the first are those they hold
  // now; slots that are new get their initial value in every row. Alone. Needs
  // twice the memory of one piece of the rows at a time. After an error for
  // want of memory nothing has changed.
  virtual Status Relayout(Span<const float> initial_values) = 0;

  // These handles name no rows any more; NewRow may name them again. Memory in
  // which no row is left is given back. Alone.
  virtual void Forget(Span<const RowHandle> handles) = 0;
  // Gives all rows and their memory back. Alone.
  virtual void Clear() = 0;

  // Of GPU memory and CPU memory together.
  virtual int64_t bytes() const = 0;

  // --- Hold ---

  // Makes rows addressable: *held is true, rows[i] is the row at handles[i],
  // its value first, for as long as *hold lives; unchanged where the handle is
  // of no row. Rows may be written meanwhile (combine/row_math.h). *hold is
  // null where rows stay where they are until a call that is made alone. *held
  // is false, and nothing is done, when the CPU cannot address so many at once:
  // Read copies them.
  virtual Status Hold(Span<const RowHandle> handles, const float** rows,
                      std::unique_ptr<RowHold>* hold, bool* held) = 0;

  // --- Compute ---

  // Applies a rule to rows, each named once; handles of no row are passed over.
  // slot_columns: one per slot of the rule, 0 for the first slot. grads:
  // [N, dim].
  virtual Status Apply(const RowRule& rule, Span<const RowHandle> handles,
                       Span<const int> slot_columns, const float* grads) = 0;

  virtual const RowHomeCosts& costs() const = 0;

  // --- What only some homes do; null for the others ---

  virtual RowTiers* tiers() { return nullptr; }
  // Rows can be used in GPU memory: pooling and summed updates are done there.
  virtual GpuRowCompute* gpu() { return nullptr; }
  // All rows are in GPU memory.
  virtual GpuTableCompute* gpu_table() { return nullptr; }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_ROW_HOME_H_

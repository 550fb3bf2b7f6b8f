// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One embedding variable in CPU memory: index, rows and meta under one façade.
// (API sketch: complete the comments; signatures may gain, not lose.)
//
// Concurrency: a table-wide gate. Lookups, updates, inserts and counters enter
// it shared and run at once; Initialize, EnsureSlots that widens rows, Erase,
// Export and Import enter it alone, so an export is one frozen snapshot of
// keys, values, slots and meta. A multi-table call enters its tables' gates in
// one global order. Two updates of the same row at once each apply whole, in some
// order (striped row locks); a reader may see a row between two elements' writes
// never between two bytes of one element.

#ifndef KERNELS_ENGINE_EMBEDDING_EMBEDDING_TABLE_H_
#define KERNELS_ENGINE_EMBEDDING_EMBEDDING_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {

struct TableOptions {
  std::string name;   // for messages
  int64_t dim = 0;    // >= 1
  bool record_frequency = false;
  bool record_version = false;
};

// One optimizer slot of the rows: its name ("Adagrad", "Adam_1") and the constant
// that a new row starts with.
struct SlotSpec {
  std::string name;
  float initial_value;
};

// What Export gives: keys in ascending order of (floormod(key, 1000), key), so
// the same table gives the same bytes whatever the insertion order.
struct TableSnapshot {
  std::vector<int64_t> keys;          // [N]
  std::vector<float> values;          // [N, dim]
  std::vector<std::vector<float>> slots;  // one [N, dim] per requested slot
  std::vector<int64_t> versions;      // [N], or [0] when not recorded; -1: never updated
  std::vector<int64_t> frequencies;   // [N], or [0] when not recorded
  std::vector<int32_t> partition_offset;  // [1001]
};

struct TableStats {
  int64_t rows, index_bytes, row_bytes, inserted_rows /* since creation */;
};

class EmbeddingTable {
 public:
  explicit EmbeddingTable(const TableOptions& options);
  ~EmbeddingTable();

  // Sets the default rows [num_default_rows, dim] that new keys copy (row
  // floormod(key, num_default_rows)), forgets all keys and all slots, and makes
  // the table usable. Calling it again empties the table.
  Status Initialize(Span<const float> default_rows, int64_t num_default_rows);
  bool initialized() const;

  const TableOptions& options() const;
  int64_t size() const;
  TableStats stats() const;

  // Makes the rows hold these slots (adding what is missing, filled with the
  // initial value in rows that exist) and gives their columns. Cheap when all are
  // there. InvalidArgument when a slot exists with another initial value? No: the
  // newer initial value wins for new rows.
  Status EnsureSlots(Span<const SlotSpec> slots, std::vector<int>* columns);

  // out[i] = value of keys[i], or its default row when absent. Inserts nothing.
  // out: [N, dim]. Any duplicates.
  Status Gather(Span<const int64_t> keys, float* out, Parallel* parallel) const;

  // frequency 0 and version -1 for a key that is absent or when not recorded.
  Status GetMeta(Span<const int64_t> keys, int64_t* frequencies,
                 int64_t* versions) const;

  // Reads value and slots of unique keys, absent keys as a new row would be.
  Status ReadRows(Span<const int64_t> keys, Span<const SlotSpec> slots,
                  float* values, Span<float* const> slot_values,
                  Parallel* parallel);
  // Inserts or overwrites rows (value and slots), stamps version = step and adds
  // counts[i] (null: 1 each) to the frequency. For the generic optimizer path.
  Status WriteRows(Span<const int64_t> keys, Span<const SlotSpec> slots,
                   const float* values, Span<const float* const> slot_values,
                   const int64_t* counts, int64_t step, Parallel* parallel);

  int64_t Erase(Span<const int64_t> keys);

  // Forgets all keys; default rows and slot columns stay. FailedPrecondition
  // before Initialize.
  Status Clear();

  Status Export(Span<const std::string> slots, TableSnapshot* snapshot);

  // Inserts or overwrites. Slots that are not given get their initial value;
  // versions / frequencies may be empty (then -1 / 0). Keeps only keys with
  // floormod(floormod(key, 1000), num_parts) == part (num_parts 1: all).
  Status Import(Span<const int64_t> keys, const float* values,
                Span<const SlotSpec> slots, Span<const float* const> slot_values,
                Span<const int64_t> versions, Span<const int64_t> frequencies,
                int part, int num_parts);

 private:
  friend class PooledLookup;
  friend class RowUpdate;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_EMBEDDING_TABLE_H_

// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reads a whole table in pieces, as it was at one moment; checkpoints are
// written from it.
//
// Open waits for the updates in flight and then sets the moment. Then lookups,
// updates and inserts go on. An update first copies each unread row that it is
// about to change, and the reader reads the copy (frozen_rows.h). At the limit
// of copies, updates that need another one wait for the reader. In two cases
// all updates and inserts wait: until Rows is called if an exact filter counts
// keys, and until the reader is destroyed if the table has more than most_rows
// rows. Calls that move or remove rows (evictions, Erase, a new slot, Import,
// Initialize) wait until the reader is destroyed.
//
// Keys are in ascending order of (floormod(key, 1000), key), and rows in the
// order of the keys, so the bytes do not depend on the order of inserts.
//
// Memory (key_order.h describes what happens beyond the limits):
//
//   keys            16 bytes each, at most 48 MiB
//   marks           2 bits per row, at most 64 MiB
//   copied rows     at most 64 MiB
//   a piece         at most Limits::piece_bytes
//   filtered keys   before the rows are read: 16 bytes each, at most 48 MiB,
//                   then 4 bytes each, at most 128 MiB

#ifndef KERNELS_ENGINE_EMBEDDING_TABLE_READER_H_
#define KERNELS_ENGINE_EMBEDDING_TABLE_READER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/parts/key_order.h"
#include "kernels/engine/embedding/row_numbers.h"

namespace ev {

class FrozenRows;
struct RowMeta;

struct TableReaderLimits {
  int64_t piece_bytes = 4 << 20;  // of a piece; at least one row
  int64_t kept_bytes = 64 << 20;  // of copied rows; at least one row
  int64_t most_rows = 1ll << 28;
};

// A piece of a table: n rows.
struct RowPiece {
  Span<const int64_t> keys;  // [n]
  // [n, width] each: the value, then the slots.
  std::vector<Span<const float>> columns;
  // [n] of each number that the table records, else empty. Version -1: never
  // updated.
  PerRowNumber<Span<const int64_t>> numbers;
};

// Not thread-safe. REQUIRES: while a reader exists, its thread calls nothing
// else on the table and does not wait for a thread that updates it; the table
// outlives the reader.
//
// Members return errors of the table (ResourceExhausted, or an error of its
// storage) and errors that a visitor returned.
class TableReader {
 public:
  using Limits = TableReaderLimits;
  // Opens a reader. NotFound: no such slot.
  static Status Open(const EmbeddingTable& table, Span<const std::string> slots,
                     std::unique_ptr<TableReader>* reader,
                     const Limits& limits = Limits());
  // The same, and adds missing slots first.
  static Status Open(EmbeddingTable* table, Span<const SlotSpec> slots,
                     std::unique_ptr<TableReader>* reader,
                     const Limits& limits = Limits());
  ~TableReader();
  TableReader(const TableReader&) = delete;
  TableReader& operator=(const TableReader&) = delete;

  template <typename T>
  using Visit = std::function<Status(Span<const T>)>;

  int64_t num_keys() const { return order_->size(); }
  // [1001]: where the keys of each floormod(key, 1000) begin.
  const std::vector<int64_t>& partition_begins() const {
    return order_->begins();
  }
  // Copies of the tensors of the table as a whole (table_tensors.h).
  const std::vector<TableTensor>& tensors() const { return tensors_; }
  bool records(RowNumber number) const;

  // Visits all keys. May be called again.
  Status Keys(const Visit<int64_t>& visit);
  // Visits all rows. FailedPrecondition: called a second time.
  Status Rows(const std::function<Status(const RowPiece&)>& visit);

  // Keys that an exact filter has counted and not admitted, in the same order.
  // FilteredNumbers is cheaper after FilteredKeys, and REQUIRES:
  // records_filtered(number). FailedPrecondition: Rows was called. Calls may be
  // repeated.
  int64_t num_filtered() const;  // 0 after Rows
  const std::vector<int64_t>& filtered_partition_begins() const;
  Status FilteredKeys(const Visit<int64_t>& visit);
  bool records_filtered(RowNumber number) const;
  Status FilteredNumbers(RowNumber number, const Visit<int64_t>& visit);

 private:
  TableReader(const EmbeddingTable& table, Span<const std::string> slots,
              const Limits& limits);
  Status Start();
  void LetUpdatesIn();
  Status ReadRows(Span<const RowHandle> handles, Span<float* const> out,
                  RowMeta* metas);
  Status CheckFilterIsReadable() const;

  EmbeddingTable::Impl* const table_;
  const Limits limits_;
  const std::vector<std::string> slots_;
  std::vector<int> columns_;  // to read: the value, then slots_
  enum class In { kNothing, kFrozen, kSnapshot } in_ = In::kNothing;
  bool read_ = false;  // Rows was called
  std::vector<TableTensor> tensors_;
  std::unique_ptr<FrozenRows> rows_;  // null with more than most_rows
  std::unique_ptr<KeyOrder> order_;
  std::unique_ptr<KeyOrder> filtered_;  // null without an exact filter
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_TABLE_READER_H_

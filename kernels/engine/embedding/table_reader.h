// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A table read from end to end in pieces, as it was at one moment: what a
// checkpoint is written from.
//
// Open is that moment: it waits for updates under way. From then on lookups,
// updates and inserts go on, and rows that they change are kept aside until
// they have been read (frozen_rows.h). When there are too many of those,
// updates wait for the reader. Two things keep updates and inserts waiting for
// longer: keys that an exact filter counts, until Rows is called, and a table
// of more than most_rows rows, until the reader is gone. Whatever moves or
// removes rows (evictions, Erase, a new slot, Import, Initialize) waits until
// the reader is gone.
//
// Keys come in ascending order of (floormod(key, 1000), key), and rows in the
// order of the keys, so the same table gives the same bytes whatever the order
// of its inserts.
//
// Memory: 16 bytes per key, at most 48 MiB; 2 bits per row, at most 64 MiB;
// rows kept aside, at most 64 MiB; one piece. Beforehand, for the keys that a
// filter counts, 16 bytes per key, at most 48 MiB, then 4 bytes per key, at
// most 128 MiB. (key_order.h says what happens beyond.)

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
  int64_t piece_bytes = 4 << 20;  // shown at once; one row at least
  int64_t kept_bytes = 64 << 20;  // of rows kept aside; one row at least
  int64_t most_rows = 1ll << 28;
};

// Some rows of a table: n of them.
struct RowPiece {
  Span<const int64_t> keys;  // [n]
  // [n, dim] each, of the value, then of the slots.
  std::vector<Span<const float>> columns;
  // [n] of what the table records, else empty. A version of -1: never updated.
  PerRowNumber<Span<const int64_t>> numbers;
};

// One thread at a time. REQUIRES that this thread calls nothing else on the
// table while a reader of it exists, nor waits for a thread that updates it,
// and that the table outlives it.
//
// Every error of a member is one of the table (ResourceExhausted, or what its
// storage says) or what a visitor returned.
class TableReader {
 public:
  using Limits = TableReaderLimits;
  // NotFound: a slot is not there.
  static Status Open(const EmbeddingTable& table, Span<const std::string> slots,
                     std::unique_ptr<TableReader>* reader,
                     const Limits& limits = Limits());
  // The same; slots that are not there are made first.
  static Status Open(EmbeddingTable* table, Span<const SlotSpec> slots,
                     std::unique_ptr<TableReader>* reader,
                     const Limits& limits = Limits());
  ~TableReader();
  TableReader(const TableReader&) = delete;
  TableReader& operator=(const TableReader&) = delete;

  template <typename T>
  using Visit = std::function<Status(Span<const T>)>;

  int64_t num_keys() const { return order_->size(); }
  // [1001]: where each remainder of 1000 begins.
  const std::vector<int64_t>& partition_begins() const {
    return order_->begins();
  }
  std::vector<float> default_rows() const;  // [R, dim]
  bool records(RowNumber number) const;

  // All keys, as often as wanted.
  Status Keys(const Visit<int64_t>& visit);
  // All rows. FailedPrecondition: a second time.
  Status Rows(const std::function<Status(const RowPiece&)>& visit);

  // The keys that an exact filter counts and has not admitted, laid out in the
  // same way; keys first is the cheaper way. FilteredNumbers REQUIRES
  // records_filtered(number). FailedPrecondition: Rows was called. The same
  // call may be made again.
  int64_t num_filtered() const;  // 0 when Rows was called
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
  Status CheckFilterIsThere() const;

  EmbeddingTable::Impl* const table_;
  const Limits limits_;
  const std::vector<std::string> slots_;
  std::vector<int> columns_;  // of the rows: of the value, then of slots_
  enum class In { kNothing, kFrozen, kSnapshot } in_ = In::kNothing;
  bool read_ = false;                 // Rows was called
  std::unique_ptr<FrozenRows> rows_;  // null with more than most_rows
  std::unique_ptr<KeyOrder> order_;
  std::unique_ptr<KeyOrder> filtered_;  // null without an exact filter
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_TABLE_READER_H_

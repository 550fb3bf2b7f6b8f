// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A table read from end to end, column by column and in pieces, while it stays
// as it is: what a checkpoint is written from.
//
// From Open to the destructor the table is frozen: lookups go on, updates,
// inserts, evictions and whatever else would change it wait. Keys come in
// ascending order of (floormod(key, 1000), key), and every column in the order
// of the keys, so the same table gives the same bytes whatever the order of its
// inserts.
//
// Memory: 16 bytes per key, at most 48 MiB, for as long as the keys are being
// read, then 4 bytes per key, at most 128 MiB (key_order.h says what happens in
// larger tables), and one piece. The rows themselves are reached by handles,
// some at a time, wherever the table keeps them.

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
#include "kernels/engine/embedding/key_order.h"

namespace ev {

// One thread at a time. REQUIRES that this thread calls nothing else on the
// table while a reader of it exists, and that the table outlives it.
//
// Every error of a member is one of the table (ResourceExhausted, or what its
// storage says) or what a visitor returned; the same call may be made again.
class TableReader {
 public:
  // Waits for updates under way, then freezes the table. NotFound: a slot is
  // not there.
  static Status Open(const EmbeddingTable& table, Span<const std::string> slots,
                     std::unique_ptr<TableReader>* reader);
  // The same; slots that are not there are made first.
  static Status Open(EmbeddingTable* table, Span<const SlotSpec> slots,
                     std::unique_ptr<TableReader>* reader);
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
  const std::vector<float>& default_rows() const;  // [R, dim]
  bool has_versions() const;
  bool has_frequencies() const;

  // All keys; call it first, the others are cheaper then.
  Status Keys(const Visit<int64_t>& visit);
  // Rows of the value (column 0) or of slots[column - 1], whole rows at a time.
  Status Rows(int column, const Visit<float>& visit);
  // REQUIRE has_versions(), has_frequencies(). -1: never updated.
  Status Versions(const Visit<int64_t>& visit);
  Status Frequencies(const Visit<int64_t>& visit);

  // The keys that an exact filter counts and has not admitted, laid out in the
  // same way. Their versions: REQUIRES has_versions().
  int64_t num_filtered() const;
  const std::vector<int64_t>& filtered_partition_begins() const;
  Status FilteredKeys(const Visit<int64_t>& visit);
  Status FilteredVersions(const Visit<int64_t>& visit);
  Status FilteredFrequencies(const Visit<int64_t>& visit);

 private:
  TableReader(const EmbeddingTable& table, Span<const std::string> slots);
  Status Start();
  Status ReadColumn(KeyOrder* order,
                    const std::function<int64_t(RowHandle)>& of,
                    const Visit<int64_t>& visit);

  const EmbeddingTable::Impl& table_;
  const std::vector<std::string> slots_;
  std::vector<int> columns_;  // of the rows: of the value, then of slots_
  bool frozen_ = false;
  std::unique_ptr<KeyOrder> order_;
  std::unique_ptr<KeyOrder> filtered_;  // null without an exact filter
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_TABLE_READER_H_

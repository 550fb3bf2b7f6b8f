// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/table_reader.h"

#include <algorithm>
#include <utility>

#include "kernels/engine/embedding/frozen_rows.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/embedding/table_tensors.h"

namespace ev {
namespace {

const std::vector<int64_t>& NoBegins() {
  static const std::vector<int64_t>* const begins =
      new std::vector<int64_t>(kKeyPartitions + 1, 0);
  return *begins;
}

}  // namespace

TableReader::TableReader(const EmbeddingTable& table,
                         Span<const std::string> slots, const Limits& limits)
    : table_(table.impl()),
      limits_(limits),
      slots_(slots.begin(), slots.end()) {}

TableReader::~TableReader() {
  if (in_ == In::kFrozen) table_->table_lock.LeaveFrozen();
  if (in_ != In::kSnapshot) return;
  // Updates that wait for this reader end before the snapshot does.
  rows_->Close();
  table_->table_lock.EndSnapshot([this] {
    std::vector<FrozenRows*>& all = table_->frozen_rows;
    all.erase(std::find(all.begin(), all.end(), rows_.get()));
  });
}

void TableReader::LetUpdatesIn() {
  if (in_ == In::kSnapshot || rows_ == nullptr) return;
  table_->table_lock.BeginSnapshot(
      [this] { table_->frozen_rows.push_back(rows_.get()); });
  in_ = In::kSnapshot;
}

Status TableReader::Start() {
  table_->table_lock.EnterFrozen();
  in_ = In::kFrozen;
  EV_RETURN_IF_ERROR(table_->CheckInitialized());
  EV_RETURN_IF_ERROR(table_->TakeCounters());
  columns_.push_back(0);
  for (const std::string& slot : slots_) {
    const int column = table_->FindSlot(slot);
    if (column < 0)
      return NotFound("no slot '" + slot + "', " + table_->QuotedName());
    columns_.push_back(1 + column);
  }
  tensors_ = GetTableTensors(*table_, /*with_fixed=*/true);
  if (table_->index.size() <= limits_.most_rows) {
    rows_.reset(new FrozenRows(*table_, columns_, limits_.kept_bytes));
  }
  if (table_->filter != nullptr && !table_->filter->is_bloom() &&
      table_->filter->size() > 0) {
    filtered_.reset(new KeyOrder(table_->filter->index()));
  } else {
    LetUpdatesIn();
  }
  order_.reset(new KeyOrder(table_->index,
                            rows_ == nullptr ? nullptr : &rows_->marks()));
  return Status::OK();
}

Status TableReader::Open(const EmbeddingTable& table,
                         Span<const std::string> slots,
                         std::unique_ptr<TableReader>* reader,
                         const Limits& limits) {
  return NoThrow(*table.impl(), [&] {
    std::unique_ptr<TableReader> made(new TableReader(table, slots, limits));
    EV_RETURN_IF_ERROR(made->Start());
    *reader = std::move(made);
    return Status::OK();
  });
}

Status TableReader::Open(EmbeddingTable* table, Span<const SlotSpec> slots,
                         std::unique_ptr<TableReader>* reader,
                         const Limits& limits) {
  return NoThrow(*table->impl(), [&] {
    std::vector<std::string> names;
    for (const SlotSpec& slot : slots) names.push_back(slot.name);
    for (;;) {
      EV_RETURN_IF_ERROR(table->EnsureSlots(slots, nullptr));
      const Status status = Open(*table, names, reader, limits);
      // Missing again if the table was initialized meanwhile.
      if (status.code() != StatusCode::kNotFound) return status;
    }
  });
}

bool TableReader::records(RowNumber number) const {
  return SpecOf(number).is_recorded(table_->options);
}

bool TableReader::records_filtered(RowNumber number) const {
  return SpecOf(number).is_counted(table_->options);
}

Status TableReader::Keys(const Visit<int64_t>& visit) {
  return NoThrow(*table_, [&] {
    const Status status = order_->ForEach(
        std::max<int64_t>(1, limits_.piece_bytes / sizeof(int64_t)),
        [&](Span<const int64_t> keys, Span<const RowHandle>) {
          return visit(keys);
        });
    // An error of the copies explains keys that seem to have been inserted.
    if (!status.ok() && rows_ != nullptr) {
      EV_RETURN_IF_ERROR(rows_->status());
    }
    return status;
  });
}

Status TableReader::ReadRows(Span<const RowHandle> handles,
                             Span<float* const> out, RowMeta* metas) {
  if (rows_ != nullptr) return rows_->Read(handles, out, metas);
  EV_RETURN_IF_ERROR(table_->CopyColumns(handles, columns_, out));
  for (size_t i = 0; i < handles.size(); ++i) {
    const RowMeta* const meta = table_->rows->Meta(handles[i]);
    metas[i] = meta == nullptr ? RowMeta() : *meta;
  }
  return Status::OK();
}

Status TableReader::Rows(const std::function<Status(const RowPiece&)>& visit) {
  return NoThrow(*table_, [&] {
    if (read_) {
      return FailedPrecondition("a reader's rows can be read only once, " +
                                table_->QuotedName());
    }
    read_ = true;
    filtered_.reset();
    LetUpdatesIn();
    const size_t num_columns = columns_.size();
    std::vector<int64_t> widths;
    int64_t row_floats = 0;
    for (const int column : columns_) {
      widths.push_back(table_->WidthOf(column));
      row_floats += widths.back();
    }
    const int64_t row_bytes =
        row_floats * sizeof(float) + sizeof(RowMeta) + 4 * sizeof(int64_t);
    const int64_t most = std::max<int64_t>(1, limits_.piece_bytes / row_bytes);
    std::vector<float> rows;
    std::vector<float*> out(num_columns);
    std::vector<RowMeta> metas;
    PerRowNumber<std::vector<int64_t>> numbers;
    RowPiece piece;
    const auto read = [&](Span<const int64_t> keys,
                          Span<const RowHandle> handles) {
      const size_t n = keys.size();
      rows.resize(n * row_floats);
      metas.resize(n);
      piece.keys = keys;
      piece.columns.clear();
      float* at = rows.data();
      for (size_t c = 0; c < num_columns; at += n * widths[c++]) {
        out[c] = at;
        piece.columns.emplace_back(at, n * widths[c]);
      }
      EV_RETURN_IF_ERROR(ReadRows(handles, out, metas.data()));
      for (int number = 0; number < kNumRowNumbers; ++number) {
        const RowNumberSpec& spec = SpecOf(number);
        if (!spec.is_recorded(table_->options)) continue;
        std::vector<int64_t>& column = numbers[number];
        column.clear();
        for (const RowMeta& meta : metas) column.push_back(spec.of_row(meta));
        piece.numbers[number] = column;
      }
      return visit(piece);
    };
    const Status status = order_->ForEach(most, read);
    if (!status.ok() && rows_ != nullptr) {
      EV_RETURN_IF_ERROR(rows_->status());
    }
    return status;
  });
}

int64_t TableReader::num_filtered() const {
  return filtered_ == nullptr ? 0 : filtered_->size();
}

const std::vector<int64_t>& TableReader::filtered_partition_begins() const {
  return filtered_ == nullptr ? NoBegins() : filtered_->begins();
}

Status TableReader::CheckFilterIsReadable() const {
  if (!read_) return Status::OK();
  return FailedPrecondition(
      "the filter's counts must be read before the rows, " +
      table_->QuotedName());
}

Status TableReader::FilteredKeys(const Visit<int64_t>& visit) {
  EV_RETURN_IF_ERROR(CheckFilterIsReadable());
  if (filtered_ == nullptr) return Status::OK();
  return NoThrow(*table_, [&] {
    return filtered_->ForEachKey(
        std::max<int64_t>(1, limits_.piece_bytes / sizeof(int64_t)), visit);
  });
}

Status TableReader::FilteredNumbers(RowNumber number,
                                    const Visit<int64_t>& visit) {
  EV_RETURN_IF_ERROR(CheckFilterIsReadable());
  if (filtered_ == nullptr) return Status::OK();
  return NoThrow(*table_, [&] {
    std::vector<int64_t> column;
    return filtered_->ForEachHandle(
        std::max<int64_t>(1, limits_.piece_bytes / sizeof(int64_t)),
        [&](Span<const RowHandle> handles) {
          column.clear();
          for (const RowHandle handle : handles) {
            column.push_back(
                SpecOf(number).of_counted(*table_->filter, handle));
          }
          return visit(column);
        });
  });
}

}  // namespace ev

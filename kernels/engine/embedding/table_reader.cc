// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/table_reader.h"

#include <algorithm>
#include <utility>

#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/table_impl.h"

namespace ev {
namespace {

// What is shown at once.
constexpr int64_t kPieceBytes = 4 << 20;

const std::vector<int64_t>& NoBegins() {
  static const std::vector<int64_t>* const begins =
      new std::vector<int64_t>(kKeyPartitions + 1, 0);
  return *begins;
}

}  // namespace

TableReader::TableReader(const EmbeddingTable& table,
                         Span<const std::string> slots)
    : table_(*table.impl()), slots_(slots.begin(), slots.end()) {}

TableReader::~TableReader() {
  order_.reset();
  filtered_.reset();
  if (frozen_) table_.gate.LeaveFrozen();
}

Status TableReader::Start() {
  table_.gate.EnterFrozen();
  frozen_ = true;
  EV_RETURN_IF_ERROR(table_.CheckInitialized());
  columns_.push_back(0);
  for (const std::string& slot : slots_) {
    const int column = table_.FindSlot(slot);
    if (column < 0)
      return NotFound("no slot '" + slot + "', " + table_.Named());
    columns_.push_back(1 + column);
  }
  order_.reset(new KeyOrder(table_.index));
  if (table_.filter != nullptr && !table_.filter->is_bloom()) {
    filtered_.reset(new KeyOrder(table_.filter->index()));
  }
  return Status::OK();
}

Status TableReader::Open(const EmbeddingTable& table,
                         Span<const std::string> slots,
                         std::unique_ptr<TableReader>* reader) {
  return NoThrow(*table.impl(), [&] {
    std::unique_ptr<TableReader> made(new TableReader(table, slots));
    EV_RETURN_IF_ERROR(made->Start());
    *reader = std::move(made);
    return Status::OK();
  });
}

Status TableReader::Open(EmbeddingTable* table, Span<const SlotSpec> slots,
                         std::unique_ptr<TableReader>* reader) {
  return NoThrow(*table->impl(), [&] {
    std::vector<std::string> names;
    for (const SlotSpec& slot : slots) names.push_back(slot.name);
    for (;;) {
      EV_RETURN_IF_ERROR(table->EnsureSlots(slots, nullptr));
      const Status status = Open(*table, names, reader);
      // Gone again when the table was initialized meanwhile.
      if (status.code() != StatusCode::kNotFound) return status;
    }
  });
}

const std::vector<float>& TableReader::default_rows() const {
  return table_.defaults;
}

bool TableReader::has_versions() const { return table_.options.record_version; }

bool TableReader::has_frequencies() const {
  return table_.options.record_frequency;
}

Status TableReader::Keys(const Visit<int64_t>& visit) {
  return NoThrow(table_, [&] {
    return order_->ForEachKey(kPieceBytes / sizeof(int64_t), visit);
  });
}

Status TableReader::Rows(int column, const Visit<float>& visit) {
  return NoThrow(table_, [&] {
    const int64_t dim = table_.dim();
    const int64_t row_bytes = dim * sizeof(float);
    std::vector<float> rows;
    return order_->ForEachHandle(std::max<int64_t>(1, kPieceBytes / row_bytes),
                                 [&](Span<const RowHandle> handles) {
                                   rows.resize(handles.size() * dim);
                                   EV_RETURN_IF_ERROR(table_.CopyColumn(
                                       handles, columns_[column], rows.data()));
                                   return visit(rows);
                                 });
  });
}

Status TableReader::ReadColumn(KeyOrder* order,
                               const std::function<int64_t(RowHandle)>& of,
                               const Visit<int64_t>& visit) {
  return NoThrow(table_, [&] {
    std::vector<int64_t> column;
    return order->ForEachHandle(kPieceBytes / sizeof(int64_t),
                                [&](Span<const RowHandle> handles) {
                                  column.clear();
                                  for (const RowHandle handle : handles) {
                                    column.push_back(of(handle));
                                  }
                                  return visit(column);
                                });
  });
}

Status TableReader::Versions(const Visit<int64_t>& visit) {
  return ReadColumn(
      order_.get(),
      [this](RowHandle handle) {
        return int64_t{table_.rows->Meta(handle)->version_plus1} - 1;
      },
      visit);
}

Status TableReader::Frequencies(const Visit<int64_t>& visit) {
  return ReadColumn(
      order_.get(),
      [this](RowHandle handle) {
        return int64_t{table_.rows->Meta(handle)->frequency};
      },
      visit);
}

int64_t TableReader::num_filtered() const {
  return filtered_ == nullptr ? 0 : filtered_->size();
}

const std::vector<int64_t>& TableReader::filtered_partition_begins() const {
  return filtered_ == nullptr ? NoBegins() : filtered_->begins();
}

Status TableReader::FilteredKeys(const Visit<int64_t>& visit) {
  if (filtered_ == nullptr) return Status::OK();
  return NoThrow(table_, [&] {
    return filtered_->ForEachKey(kPieceBytes / sizeof(int64_t), visit);
  });
}

Status TableReader::FilteredVersions(const Visit<int64_t>& visit) {
  if (filtered_ == nullptr) return Status::OK();
  return ReadColumn(
      filtered_.get(),
      [this](RowHandle handle) { return table_.filter->VersionOf(handle); },
      visit);
}

Status TableReader::FilteredFrequencies(const Visit<int64_t>& visit) {
  if (filtered_ == nullptr) return Status::OK();
  return ReadColumn(
      filtered_.get(),
      [this](RowHandle handle) { return table_.filter->CountOf(handle); },
      visit);
}

}  // namespace ev

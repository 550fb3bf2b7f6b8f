// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/checkpoint/save_table.h"

#include <limits>
#include <memory>

#include "kernels/engine/checkpoint/tensor_names.h"
#include "kernels/engine/embedding/row_numbers.h"
#include "kernels/engine/embedding/table_reader.h"
#include "kernels/engine/embedding/table_tensors.h"

namespace ev {
namespace {

namespace names = tensor_names;

// The stream of everything except rows and their numbers.
constexpr int kMainStream = 0;
// Column 0 is the value, followed by the slots and the recorded numbers.
int RowStream(size_t column) { return static_cast<int>(1 + column); }

ElementType ElementTypeOf(RowType type) {
  switch (type) {
    case RowType::kFloat16:
      return ElementType::kFloat16;
    case RowType::kUint8:
      return ElementType::kUint8;
    default:
      return ElementType::kFloat;
  }
}

class TableSaver {
 public:
  TableSaver(const SaveOptions& options, TableReader* reader, int64_t dim,
             TensorWriter* checkpoint)
      : options_(options),
        reader_(reader),
        dim_(dim),
        checkpoint_(checkpoint),
        format_(static_cast<int>(dim), options.row_type) {}

  Status Save() {
    const int64_t n = reader_->num_keys();
    // Readers of the format count rows in int32.
    if (n > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument(
          "a checkpoint holds at most 2^31 - 1 rows of a table, got " +
          std::to_string(n));
    }
    // First, because updates wait while filtered keys are read.
    EV_RETURN_IF_ERROR(SaveFiltered());
    EV_RETURN_IF_ERROR(SaveTensors());
    EV_RETURN_IF_ERROR(
        SaveOffsets(names::kPartitionOffset, reader_->partition_begins()));
    EV_RETURN_IF_ERROR(SaveRows(n));
    for (const SlotSpec& slot : options_.slots) {
      EV_RETURN_IF_ERROR(NameForSlot(names::SlotOf(options_.name, slot.name)));
    }
    return Status::OK();
  }

 private:
  Status Begin(int stream, const char* suffix, ElementType type, int64_t n) {
    return checkpoint_->Begin(stream, options_.name + suffix, type, {n});
  }

  template <typename T>
  Status Append(int stream, Span<const T> elements) {
    return checkpoint_->Append(stream, elements.data(),
                               elements.size() * sizeof(T));
  }

  Status BeginKeys(const char* suffix, int64_t n) {
    return Begin(
        kMainStream, suffix,
        options_.int32_keys ? ElementType::kInt32 : ElementType::kInt64, n);
  }

  // Appends keys in the stored type.
  Status AppendKeys(Span<const int64_t> keys) {
    if (!options_.int32_keys) return Append(kMainStream, keys);
    narrow_.clear();
    for (const int64_t key : keys) {
      narrow_.push_back(static_cast<int32_t>(key));
      if (narrow_.back() != key) {
        return InvalidArgument("key " + std::to_string(key) +
                               " does not fit into int32, the type of the "
                               "stored keys");
      }
    }
    return Append<int32_t>(kMainStream, narrow_);
  }

  Status SaveTensors() {
    const std::vector<TableTensor>& tensors = reader_->tensors();
    for (size_t i = 0; i < tensors.size(); ++i) {
      const TableTensorSpec& spec = TableTensorSpecs()[i];
      EV_RETURN_IF_ERROR(checkpoint_->Begin(
          kMainStream, names::TensorOf(options_.name, spec.name), spec.type,
          tensors[i].shape));
      EV_RETURN_IF_ERROR(Append<char>(kMainStream, tensors[i].bytes));
    }
    return Status::OK();
  }

  Status SaveOffsets(const char* suffix, const std::vector<int64_t>& begins) {
    const std::vector<int32_t> narrow(begins.begin(), begins.end());
    EV_RETURN_IF_ERROR(
        Begin(kMainStream, suffix, ElementType::kInt32, narrow.size()));
    return Append<int32_t>(kMainStream, narrow);
  }

  Status SaveFiltered() {
    const int64_t n = options_.with_filtered ? reader_->num_filtered() : 0;
    EV_RETURN_IF_ERROR(BeginKeys(names::kFilteredKeys, n));
    // Do not call the reader without filtered keys.
    if (n > 0) {
      EV_RETURN_IF_ERROR(reader_->FilteredKeys(
          [this](Span<const int64_t> piece) { return AppendKeys(piece); }));
    }
    for (int i = 0; i < kNumRowNumbers; ++i) {
      const RowNumber number = static_cast<RowNumber>(i);
      const int64_t count = reader_->records_filtered(number) ? n : 0;
      EV_RETURN_IF_ERROR(Begin(kMainStream, names::Of(number).filtered,
                               ElementType::kInt64, count));
      if (count == 0) continue;
      EV_RETURN_IF_ERROR(
          reader_->FilteredNumbers(number, [this](Span<const int64_t> piece) {
            return Append(kMainStream, piece);
          }));
    }
    return SaveOffsets(names::kFilteredPartitionOffset,
                       n > 0 ? reader_->filtered_partition_begins()
                             : std::vector<int64_t>(kKeyPartitions + 1));
  }

  // Writes all columns side by side, so that rows are read once. A number that
  // is not recorded becomes an empty column.
  Status SaveRows(int64_t n) {
    int stream = RowStream(1 + options_.slots.size());
    for (int i = 0; i < kNumRowNumbers; ++i) {
      const RowNumber number = static_cast<RowNumber>(i);
      const bool recorded = reader_->records(number);
      EV_RETURN_IF_ERROR(Begin(recorded ? stream++ : kMainStream,
                               names::Of(number).rows, ElementType::kInt64,
                               recorded ? n : 0));
    }
    EV_RETURN_IF_ERROR(BeginKeys(names::kKeys, n));
    for (size_t c = 0; c <= options_.slots.size(); ++c) {
      std::string name = options_.name;
      RowType row_type = format_.type;
      int64_t width =
          row_type == RowType::kUint8 ? FileRowBytes(format_) : dim_;
      if (c > 0) {
        const SlotSpec& slot = options_.slots[c - 1];
        name = names::SlotOf(name, slot.name);
        row_type = RowType::kFloat32;
        width = slot.WidthIn(dim_);
      }
      EV_RETURN_IF_ERROR(checkpoint_->Begin(RowStream(c), name + names::kValues,
                                            ElementTypeOf(row_type),
                                            {n, width}));
    }
    return reader_->Rows(
        [this](const RowPiece& piece) { return AppendRows(piece); });
  }

  Status AppendRows(const RowPiece& piece) {
    EV_RETURN_IF_ERROR(AppendKeys(piece.keys));
    EV_RETURN_IF_ERROR(AppendValues(piece));
    for (size_t c = 1; c < piece.columns.size(); ++c) {
      EV_RETURN_IF_ERROR(Append(RowStream(c), piece.columns[c]));
    }
    int stream = RowStream(piece.columns.size());
    for (int i = 0; i < kNumRowNumbers; ++i) {
      if (!reader_->records(static_cast<RowNumber>(i))) continue;
      EV_RETURN_IF_ERROR(Append(stream++, piece.numbers[i]));
    }
    return Status::OK();
  }

  Status AppendValues(const RowPiece& piece) {
    const Span<const float> values = piece.columns[0];
    if (!format_.is_packed()) return Append(RowStream(0), values);
    packed_.resize(piece.keys.size() * FileRowBytes(format_));
    EV_RETURN_IF_ERROR(
        PackFileRows(format_, piece.keys, values.data(), packed_.data()));
    return Append<char>(RowStream(0), packed_);
  }

  // The format has keys and numbers for each slot: they refer to the same
  // elements.
  Status NameForSlot(const std::string& slot) {
    std::vector<const char*> suffixes = {names::kKeys, names::kPartitionOffset,
                                         names::kFilteredKeys,
                                         names::kFilteredPartitionOffset};
    for (const names::NumberNames& number : names::kNumbers) {
      suffixes.push_back(number.rows);
      suffixes.push_back(number.filtered);
    }
    for (const char* suffix : suffixes) {
      EV_RETURN_IF_ERROR(
          checkpoint_->SameAs(slot + suffix, options_.name + suffix));
    }
    return Status::OK();
  }

  const SaveOptions& options_;
  TableReader* const reader_;
  const int64_t dim_;
  TensorWriter* const checkpoint_;
  const RowFormat format_;  // of the values
  std::vector<int32_t> narrow_;
  std::vector<char> packed_;
};

}  // namespace

int NumSaveStreams(const SaveOptions& options, const TableOptions& table) {
  int streams = RowStream(1 + options.slots.size());
  for (int i = 0; i < kNumRowNumbers; ++i) {
    streams += SpecOf(i).is_recorded(table);
  }
  return streams;
}

Status SaveTable(const SaveOptions& options, EmbeddingTable* table,
                 TensorWriter* checkpoint) {
  std::unique_ptr<TableReader> reader;
  EV_RETURN_IF_ERROR(TableReader::Open(table, options.slots, &reader));
  return TableSaver(options, reader.get(), table->options().dim, checkpoint)
      .Save();
}

}  // namespace ev
